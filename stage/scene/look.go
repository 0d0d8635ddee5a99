package scene

// builtIn are the looks that every scene has, unless it declares others of
// their names. They are called as the figures that package picture draws.
var builtIn = map[string]Look{
	"person":   {"person", "#8aa4c8", defaultSize},
	"robot":    {"robot", "#7dd3c0", defaultSize},
	"bird":     {"bird", "#e5e7eb", 36},
	"building": {"building", "#64748b", 96},
	"house":    {"house", "#b08968", 84},
	"box":      {"box", "#c69c6d", 44},
	"gear":     {"gear", "#94a3b8", 44},
	"tool":     {"gear", "#94a3b8", 44},
	"star":     {"star", "#fbbf24", 40},
	"document": {"document", "#e2e8f0", 40},
	"screen":   {"screen", "#60a5fa", defaultSize},
	"database": {"database", "#a78bfa", defaultSize},
	"cloud":    {"cloud", "#bae6fd", defaultSize},
	"tree":     {"tree", "#4d9f6b", 84},
	"flag":     {"flag", "#f87171", 60},
	"dot":      {"dot", "#cbd5e1", 20},
	"token":    {"token", "#8aa4c8", 48},
}
