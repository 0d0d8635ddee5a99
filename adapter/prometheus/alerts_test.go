package prometheus_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	prom "github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v4"

	"github.com/sajou-dev/sajou-go/adapter/prometheus"
)

// Every alert rule asks for metrics that the program has, and says what to do.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("../../docs/ops/alerts.yaml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	descs := make(chan *prom.Desc, 1000)
	prometheus.New(prometheus.Config{}).Describe(descs)
	close(descs)
	known := map[string]bool{}
	for d := range descs {
		known[regexp.MustCompile(`fqName: "([^"]*)"`).FindStringSubmatch(d.String())[1]] = true
	}
	require.NotEmpty(t, file.Groups)
	for _, rule := range file.Groups[0].Rules {
		names := regexp.MustCompile(`sajou_\w+`).FindAllString(rule.Expr, -1)
		assert.NotEmpty(t, names, rule.Alert)
		for _, name := range names {
			base := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
			assert.True(t, known[name] || known[base], "%s asks for %s", rule.Alert, name)
		}
		assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		assert.NotEmpty(t, rule.Annotations["action"], rule.Alert)
	}
}
