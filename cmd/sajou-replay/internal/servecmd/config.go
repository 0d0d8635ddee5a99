package servecmd

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/server/settings"
)

// maxConfig bounds the file of settings, in bytes.
const maxConfig = 1 << 20

// settingFlags are the flags of the settings, and --config.
type settingFlags struct {
	file  string
	texts map[string]*[]string
}

// register adds a flag for each setting to a command.
func (f *settingFlags) register(cmd *cobra.Command) {
	f.texts = map[string]*[]string{}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.file, "config", "", "read settings from the YAML `FILE`; SAJOU_CONFIG sets the default")
	for _, s := range settings.All() {
		values := new([]string)
		f.texts[s.Name] = values
		flags.Var(&settingValue{s, values}, s.Name, s.Usage)
		if s.Form == settings.FormBool {
			flags.Lookup(s.Name).NoOptDefVal = "true"
		}
	}
}

// settingValue is the value of a flag. The text is checked when the settings are
// resolved, with those of the other sources.
type settingValue struct {
	setting settings.ServerSetting
	texts   *[]string
}

func (v *settingValue) String() string { return strings.Join(*v.texts, ",") }
func (v *settingValue) Type() string   { return v.setting.Operand }

func (v *settingValue) Set(text string) error {
	if v.setting.Form != settings.FormList {
		*v.texts = []string{text}
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		*v.texts = append(*v.texts, strings.TrimSpace(part))
	}
	return nil
}

// resolve returns the settings of a command line, the environment and the file.
func (f *settingFlags) resolve(cmd *cobra.Command) (*settings.ServerSettings, []settings.ResolvedSetting, error) {
	given := settings.Given{Flags: map[string][]string{}, Variable: os.LookupEnv, File: f.file}
	for name, texts := range f.texts {
		if cmd.Flags().Changed(name) {
			given.Flags[name] = *texts
		}
	}
	if given.File == "" {
		given.File = os.Getenv("SAJOU_CONFIG")
	}
	if given.File != "" {
		text, err := cli.ReadFile(cmd.Context(), given.File, maxConfig)
		if err != nil {
			return nil, nil, err
		}
		given.Text = text
	}
	s, values, err := settings.Resolve(given)
	if err != nil {
		return nil, nil, cli.Misuse("%w", err)
	}
	return s, values, nil
}

// Config returns the command "config".
func Config(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check the settings of the server",
		Long: `Config has the command "config check", which finds and checks the settings of
"serve" without starting a server. "serve --help" lists the settings.`,
		Example: `  sajou-replay config check`,
		Args:    cli.GroupArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(configCheck(a))
	return cmd
}

func configCheck(a *cli.App) *cobra.Command {
	var given settingFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Show the value of every setting and where it was given",
		Long: `Check finds the settings as "serve" does, checks them, and lists each with its
value and the place where it was given: a flag, a variable of the environment, a
line of the file, or the default. It reads the certificates and the tokens and
refuses what "serve" would refuse, but starts nothing, opens no store and does
not try the addresses. A variable whose name is almost that of a setting is
reported.

With -o json it is a list of objects with name, value (a text, or a list of
texts) and source.

The exit code is 0, or 2 if a setting is refused.`,
		Example: `  sajou-replay config check
  sajou-replay config check --config serve.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, values, err := given.resolve(cmd)
			if err != nil {
				return err
			}
			for _, warning := range misspelled(os.Environ()) {
				fmt.Fprintln(a.Stderr, "sajou-replay: "+termtext.Printable(warning))
			}
			if s.Server.TLS, err = readTLS(s); err != nil {
				return err
			}
			if err := checkExposure(a, s, s.Listen, newLogger(a, s)); err != nil {
				return err
			}
			o := a.Output()
			for _, v := range values {
				shown := strings.Join(v.Texts, ", ")
				item := settingItem{v.Setting.Name, shown, v.Source}
				if v.Setting.Form == settings.FormList {
					item.Value = v.Texts
				}
				if err := o.ItemOf(fmt.Sprintf("%-20s %-32s %s", v.Setting.Name, termtext.Printable(shown), termtext.Printable(v.Source)), item); err != nil {
					return err
				}
			}
			return o.End()
		},
	}
	given.register(cmd)
	return cmd
}

// otherVariables are the variables of the program that the server does not read.
var otherVariables = []string{
	"SAJOU_STORE", "SAJOU_SERVER", "SAJOU_TOKEN", "SAJOU_TOKEN_FILE", "SAJOU_CONFIG", "SAJOU_MAX_MEMORY", "SAJOU_FIND", "SAJOU_JUDGE_KEY", "SAJOU_CHARACTER_KEY",
}

// misspelled returns a warning for each variable of an environment that may be meant as a
// setting, but is none.
func misspelled(environment []string) []string {
	var known, warnings []string
	for _, s := range settings.All() {
		known = append(known, s.Variable())
	}
	for _, v := range environment {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "SAJOU_") || slices.Contains(known, name) || slices.Contains(otherVariables, name) {
			continue
		}
		if meant, ok := spelling.Nearest(name, known); ok {
			warnings = append(warnings, fmt.Sprintf("%s is not a setting; did you mean %s?", name, meant))
		}
	}
	return warnings
}

// settingItem is a setting in JSON.
type settingItem struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Source string `json:"source"`
}
