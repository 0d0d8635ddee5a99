package episode

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/internal/wording"
)

// Genre is a doctrine: the style in which a story is played. A genre belongs to a
// story, not to a character.
type Genre struct {
	ID, Name, Tagline, Purpose string
	Mandatory, Forbidden       []string
	EnergyLabel                string
	Energy                     map[string]string // by one of Energies
	Closing                    string
	Pacing                     map[string]string // by one of Phases

	digest ContentDigest
}

// Energies returns the energy levels of a character, the calmest first.
func Energies() []string { return slices.Clone(energies) }

// EnergyLevel returns the index of a level in [Energies], -1 for any other text.
func EnergyLevel(name string) int { return slices.Index(energies, name) }

// EnergyName returns the level of an index in [Energies].
func EnergyName(level int) string { return energies[level] }

var energies = []string{"reserved", "playful", "flirty", "bold"}

// Digest returns the digest of the doctrine's content.
func (g *Genre) Digest() ContentDigest { return g.digest }

// fallbackGenre replaces a genre that is not known.
const fallbackGenre = "romantic_tension"

//go:embed genres/*.json
var genreFiles embed.FS

// genres are the doctrines that come with the program, by id, immutable.
var genres, genreNames = loadGenres()

func loadGenres() (map[string]*Genre, []string) {
	files, err := genreFiles.ReadDir("genres")
	if err != nil {
		panic(fmt.Sprintf("director: the embedded genres: %v", err))
	}
	all := make(map[string]*Genre, len(files))
	var names []string
	for _, f := range files {
		text, err := genreFiles.ReadFile("genres/" + f.Name())
		if err != nil {
			panic(fmt.Sprintf("director: the embedded genres: %v", err))
		}
		g, diagnostics := ParseGenre(f.Name(), text)
		if g == nil || g.ID+".json" != f.Name() {
			panic(fmt.Sprintf("director: the embedded genres: %v", diagnostics))
		}
		all[g.ID] = g
		names = append(names, g.ID)
	}
	return all, names
}

// Genres lists the doctrines that come with the program, by name.
func Genres() []string { return append([]string(nil), genreNames...) }

// GenreByName returns the doctrine of that name, nil if there is none.
func GenreByName(name string) *Genre { return genres[genreKey(name)] }

// genreKey returns a name in lower snake case.
func genreKey(name string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '-' || r == '_' }), "_"))
}

// ParseGenre reads a doctrine from the text of a file, JSON or YAML as in [Parse]. The doctrine is nil if there is
// an error.
func ParseGenre(file string, text []byte) (*Genre, authored.Diagnostics) {
	t, refused := authored.Read(file, text)
	if refused != nil {
		return nil, refused
	}
	var b builder
	g := b.genre(root(t.Value))
	if b.Refused() {
		g = nil
	}
	return g, t.Placed(b.Diagnostics(file, t.JSON))
}

func (b *builder) genre(n node) *Genre {
	if !b.object(n, "a doctrine", "sajou", "version", "id", "name", "tagline", "purpose", "mandatory", "forbidden", "energy_label", "energy", "closing", "pacing") {
		return nil
	}
	g := &Genre{
		ID: b.id(n), Name: b.needed(n, "name"), Tagline: b.needed(n, "tagline"), Purpose: b.needed(n, "purpose"),
		Mandatory: b.texts(n, "mandatory"), Forbidden: b.texts(n, "forbidden"),
		EnergyLabel: b.needed(n, "energy_label"), Closing: b.needed(n, "closing"),
		Energy: b.texted(n, "energy", energies), Pacing: b.texted(n, "pacing", phases),
		digest: digestOfValue(n.Value),
	}
	if g.ID != genreKey(g.ID) {
		b.errorf(n.at("id"), "%s is not lower snake case", wording.Quoted(g.ID))
	}
	if i := len(g.Mandatory); i < 6 || i > 8 {
		b.errorf(n.at("mandatory"), "want 6 to 8 rules, not %d", i)
	}
	if i := len(g.Forbidden); i < 5 || i > 11 {
		b.errorf(n.at("forbidden"), "want 5 to 11 rules, not %d", i)
	}
	return g
}

// texted reads an object with a text for each of the names.
func (b *builder) texted(n node, name string, names []string) map[string]string {
	m := n.at(name)
	if !b.object(m, "the texts of "+name, names...) {
		return nil
	}
	texts := make(map[string]string, len(names))
	for _, key := range names {
		texts[key] = b.needed(m, key)
	}
	return texts
}
