package api

import (
	"net/http"

	"parley/desk"
)

func (s *Server) listChannels(c *call) (answer, error) {
	return answer{http.StatusOK, listOf(c.out, c.principal.Settings.Channels(), appendChannel, "")}, nil
}

func (s *Server) getChannel(c *call) (answer, error) {
	channel := c.principal.Settings.Channel(c.id())
	if channel == nil {
		return answer{}, desk.NoChannel()
	}
	return answer{http.StatusOK, dataOf(c.out, channel, appendChannel)}, nil
}
