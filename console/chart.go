package console

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"parley/desk"
)

// The sizes of pictures, in units of their view box. A picture is as wide as a phone's
// screen, so its text is as large as other text.
const (
	chartWidth   = 360
	barStep      = 44 // from one bar to the next, with the text above the bar
	columnHeight = 120
	columnFoot   = 24 // below the columns, for the names of days
	columnHead   = 20 // above them, for the greatest number
)

// A chart is a picture: bars or columns, a summary in words, and a table.
type chart struct {
	Name    string // for its elements' ids
	Title   string
	Summary string
	Width   int
	Height  int
	Bars    []bar
	Columns []column
	Marks   []mark
	Base    int // the y of the lower end of the columns
	Heads   []string
	Lines   [][]string // of the table
	Note    string
}

// A bar is horizontal, with its text above it.
type bar struct {
	Label, Value    string
	TextY, Y, Width int
	Kind            string // good, bad, or "" for the accent colour
}

// A column is vertical. It stands for received messages, or for sent messages.
type column struct {
	X, Y, Width, Height float64
	Sent                bool
}

// A mark is a text in a picture.
type mark struct {
	X, Y int
	End  bool // X is the end of the text
	Text string
}

// barsOf makes a chart for bars. The parameter of is the value of the longest possible
// bar.
func barsOf(name, title, summary string, of int64, heads []string) *chart {
	return &chart{Name: name, Title: title, Summary: summary, Width: chartWidth, Heads: heads, Base: int(max(of, 1))}
}

// barWords is the approximate number of characters that fit above a bar: the texts of a
// picture don't wrap.
const barWords = 50

// bar adds a bar for n to the picture, and a line to the table.
func (c *chart) bar(label, value, kind string, n int64, line ...string) {
	y := len(c.Bars) * barStep
	if words, most := []rune(label), barWords-utf8.RuneCountInString(value); len(words) > most {
		label = string(words[:max(most-1, 0)]) + "…"
	}
	c.Bars = append(c.Bars, bar{Label: label, Value: value, TextY: y + 15, Y: y + 22, Width: int(min(n, int64(c.Base)) * chartWidth / int64(c.Base)), Kind: kind})
	c.Height = len(c.Bars) * barStep
	c.Lines = append(c.Lines, line)
}

// A dayCount is one day of a chart of columns.
type dayCount struct {
	Day            desk.Time
	Received, Sent int64
}

// columnsOf draws two columns for each day: received and sent.
func columnsOf(name, title, summary string, days []dayCount) *chart {
	c := &chart{Name: name, Title: title, Summary: summary, Width: chartWidth, Height: columnHead + columnHeight + columnFoot, Base: columnHead + columnHeight, Heads: []string{"Day (UTC)", "Received", "Sent"}}
	most := int64(1)
	for _, d := range days {
		most = max(most, d.Received, d.Sent)
	}
	slot := float64(chartWidth) / float64(len(days))
	tall := func(n int64) float64 { return rounded(float64(n) * columnHeight / float64(most)) }
	for i, d := range days {
		x, h := float64(i)*slot, tall(d.Received)
		if h > 0 {
			c.Columns = append(c.Columns, column{X: rounded(x + slot*.1), Y: float64(c.Base) - h, Width: rounded(slot * .38), Height: h})
		}
		if h = tall(d.Sent); h > 0 {
			c.Columns = append(c.Columns, column{X: rounded(x + slot*.52), Y: float64(c.Base) - h, Width: rounded(slot * .38), Height: h, Sent: true})
		}
		c.Lines = append(c.Lines, []string{dayName(d.Day), count(int(d.Received)), count(int(d.Sent))})
	}
	c.Marks = []mark{{Y: columnHead - 6, Text: count(int(most))}, {Y: c.Height - 6, Text: dayName(days[0].Day)}, {X: chartWidth, Y: c.Height - 6, End: true, Text: dayName(days[len(days)-1].Day)}}
	return c
}

// rounded returns f with one decimal, which is enough for a picture.
func rounded(f float64) float64 { return float64(int(f*10+.5)) / 10 }

// dayName returns the name of a day in UTC: 3 Mar.
func dayName(day desk.Time) string { return time.UnixMilli(int64(day)).UTC().Format("2 Jan") }

// percent returns a share as text: 62 %.
func percent(n, of int64) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%d %%", (n*100+of/2)/of)
}

// Empty reports whether the chart has neither bars nor columns.
func (c *chart) Empty() bool { return len(c.Bars) == 0 && len(c.Columns) == 0 }

// sentences joins the parts of a summary.
func sentences(parts ...string) string { return strings.Join(parts, ", ") + "." }
