package web

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics counts requests by route and status. Labels are few and name no record.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_http_requests_total", Help: "Requests answered, by route and status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "parley_http_request_seconds", Help: "Time from a request's header to its answer, by route.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 16),
		}, []string{"route"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "parley_build_info", Help: "1, labelled with the version.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(m.requests, m.seconds, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// budget shows how much memory the bodies of some callers take.
func (m *metrics) budget(caller string, budgets ...*budget) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parley_http_body_bytes", Help: "Memory of large request and answer bodies in flight.", ConstLabels: prometheus.Labels{"caller": caller},
	}, func() (bytes float64) {
		for _, b := range budgets {
			bytes += float64(b.bytes())
		}
		return bytes
	}))
}

// route returns a function that counts the answers of one route.
func (m *metrics) route(pattern string) func(status int, took time.Duration) {
	seconds := m.seconds.WithLabelValues(pattern)
	var byStatus sync.Map                                                                         // status to prometheus.Counter: looking labels up costs more
	for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable} { // so that a rate also counts the first one
		byStatus.Store(status, m.requests.WithLabelValues(pattern, strconv.Itoa(status)))
	}
	return func(status int, took time.Duration) {
		seconds.Observe(took.Seconds())
		counter, ok := byStatus.Load(status)
		if !ok {
			counter, _ = byStatus.LoadOrStore(status, m.requests.WithLabelValues(pattern, strconv.Itoa(status)))
		}
		counter.(prometheus.Counter).Inc()
	}
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
