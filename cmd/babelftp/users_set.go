package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

func newUsersSetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set USER KEY=VALUE... [--config FILE]",
		Short: "Change the settings of a user",
		Long: "Change the settings of a user. KEY is a key of a user in the configuration reference " +
			"(tenants.TENANT.users.USER):\n" + wrapped(config.UserKeys()) + "\n\n" +
			"An empty VALUE removes the key, so that its default applies. Lists are separated by commas, or written in " +
			"YAML, as in [a, b].\nThe NAME of path_permissions is a pattern. Whole sections are written in YAML, as in " +
			"limits='{sessions: 5}'.\n\n" +
			"Limits and quotas apply to open sessions too, and disabled and expired users are disconnected. Other settings apply " +
			"to the next login.\n\n" + howToEdit,
		Example: "  babelftp users set alice@acme quota=10GiB language=fr expires=2027-01-31\n" +
			"  babelftp users set alice@acme permissions=list,read path_permissions./inbox=list,write,mkdir\n" +
			"  babelftp users set alice@acme limits.sessions=5 limits.upload_rate=2MiB limits.allow=203.0.113.0/24\n" +
			"  babelftp users set scanner@acme compatibility.charset=shift_jis tls.required=false\n" +
			"  babelftp users set till7@acme certificates=subject:CN=till-7,O=Acme,email:till-7@acme.example\n" +
			"  babelftp users set alice@acme quota= expires=        # no quota, no expiry",
		ValidArgsFunction: completeSettings,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return newUsageError(cmd, "expected %s, and KEY=VALUE", oneUser)
			}
			return nil
		},
	}
	file := addConfigFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		settings, err := parseSettings(cmd, args[1:])
		if err != nil {
			return err
		}
		a, err := findAccount(cmd, *file, args[0], false, "")
		if err != nil {
			return err
		}
		return runEdit(cmd, a, func(a account) (string, error) {
			keys := make([]string, len(settings))
			for i, s := range settings {
				keys[i] = s.Key
			}
			return a.String() + " is changed in " + a.place.Name + ": " + strings.Join(keys, ", "), a.change(a.set(settings))
		})
	}
	return cmd
}

// completeSettings completes KEY=VALUE after USER.
func completeSettings(_ *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return config.CompleteUserSetting(begun), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// parseSettings parses the settings on a command line.
func parseSettings(cmd *cobra.Command, texts []string) ([]yamlconf.Setting, error) {
	settings, given := make([]yamlconf.Setting, len(texts)), map[string]bool{}
	for i, text := range texts {
		var err error
		switch settings[i], err = config.ParseUserSetting(text); {
		case err != nil:
			return nil, newUsageError(cmd, "%w", err)
		case given[settings[i].Key]:
			return nil, newUsageError(cmd, "%s is given twice: write a list as a,b", settings[i].Key)
		}
		given[settings[i].Key] = true
	}
	return settings, nil
}

// set returns a function that changes the settings of the user in their order.
func (a account) set(settings []yamlconf.Setting) func(*usersfile.Document) error {
	return func(d *usersfile.Document) error {
		for _, s := range settings {
			var err error
			if s.Value == nil {
				err = d.Unset(a.user, s.Path...)
			} else {
				err = d.Set(a.user, s.Value, s.Path...)
			}
			if err != nil {
				return err
			}
			if s.Key == "disabled" && cmp.Or(d.Get(a.user, s.Key), "false") == "false" {
				d.WithoutReason(a.user)
			}
		}
		return nil
	}
}

// wrapped returns the words in lines of a help text, separated by commas.
func wrapped(words []string) string {
	const width = 120
	var b strings.Builder
	column := 0
	for i, word := range words {
		if i < len(words)-1 {
			word += ","
		}
		switch {
		case i == 0:
		case column+len(word) >= width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		column += len(word)
		fmt.Fprint(&b, word)
	}
	return b.String()
}
