package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/manifest"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

func newKubernetesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubernetes",
		Short: "Convert tenants to custom resources of Kubernetes",
		Long: "Convert tenants to custom resources of Kubernetes.\n\n" +
			"babelftp-kubernetes serves tenants and users that are custom resources.",
		Example: "  babelftp kubernetes export --config babelftp.yaml --namespace team-a > team-a.yaml",
		Args:    commandNeeded,
		RunE:    func(*cobra.Command, []string) error { return nil }, // Args always returns an error
	}
	cmd.AddCommand(newKubernetesExportCommand())
	return cmd
}

func newKubernetesExportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export [--config FILE] [--namespace NAMESPACE] [--tenant TENANT]",
		Short: "Print the manifests of FTPTenants and FTPUsers",
		Long: "Print the tenants and users of a configuration as FTPTenants, FTPUsers and the Secrets and ConfigMaps that they refer " +
			"to.\nThe file is a configuration, or a file of values for the Helm chart with a section config.\n\n" +
			"Standard error has notes about what is not converted and what changes for users, and the values of the chart that allow " +
			"the\nnamespace what its tenants use. The manifests contain all secrets of the configuration: keep them out of a repository.",
		Example: "  babelftp kubernetes export --config babelftp.yaml --namespace team-a > team-a.yaml\n" +
			"  babelftp kubernetes export --config values.yaml --namespace team-a --tenant acme | kubectl apply --filename -",
		Args: noArguments,
	}
	file := addConfigFlag(cmd)
	o := manifest.Options{}
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", "default", "the `NAMESPACE` of the objects")
	cmd.Flags().StringVar(&o.Tenant, "tenant", "", "print only the objects of this `TENANT`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`).MatchString(o.Namespace) {
			return newUsageError(cmd, "--namespace %q is not the name of a namespace: write up to 63 lower-case letters, digits and -",
				o.Namespace)
		}
		cfg, err := loadForExport(cmd, *file, &o)
		if err != nil {
			return err
		}
		if o.Tenant != "" && cfg.Tenants[o.Tenant] == nil {
			return errNoTenant(cfg, o.Tenant)
		}
		result, err := manifest.Export(cfg, o)
		if err != nil {
			return err
		}
		if err := result.Write(cmd.OutOrStdout()); err != nil {
			return err
		}
		return writeExportNotes(cmd, o.Namespace, result)
	}
	return cmd
}

// writeExportNotes writes the notes, and the values of the chart for the namespace.
func writeExportNotes(cmd *cobra.Command, namespace string, result *manifest.Result) error {
	out := cmd.ErrOrStderr()
	for _, note := range result.Notes {
		fmt.Fprintln(out, "note: "+note)
	}
	values := map[string]any{"customResources": map[string]any{
		"enabled": true, "namespaces": map[string]any{namespace: yamlconf.Encode(result.Border)},
	}}
	text, err := yaml.Dump(values, yaml.WithIndent(2))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "note: these values of the chart allow the namespace what its tenants use:\n%s", text)
	return nil
}

// loadForExport loads a configuration, or the configuration in a file of values for the chart.
func loadForExport(cmd *cobra.Command, file string, o *manifest.Options) (*config.Config, error) {
	if file == "" {
		return nil, errNoConfig(cmd)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration %s: %w", file, yamlconf.WithoutPath(err))
	}
	var values chartValues
	err = yaml.Unmarshal(text, &values)
	if err == nil && values.ExistingSecret != "" {
		return nil, fmt.Errorf("%s: existingSecret has the configuration: write its key babelftp.yaml to a file, and convert that one", file)
	}
	if err != nil || values.Config.Kind != yaml.MappingNode {
		return config.Load(file, os.Environ())
	}
	o.Existing = values.existing
	return values.load(file)
}

// chartValues are the values of the chart that concern tenants.
type chartValues struct {
	Config         yaml.Node `yaml:"config"`
	ExistingSecret string    `yaml:"existingSecret"`
	Secrets        map[string]struct {
		ExistingSecret string            `yaml:"existingSecret"`
		Data           map[string]string `yaml:"data"`
	} `yaml:"secrets"`
}

// secretsFolder is the folder in which pods of the chart see Secrets.
const secretsFolder = "/run/babelftp/secrets/"

// load decodes the configuration. It does not validate all of it, because the files of existing Secrets are only in
// pods. Values from such files are their paths.
func (v *chartValues) load(file string) (*config.Config, error) {
	text, err := yaml.Marshal(&v.Config)
	if err != nil {
		return nil, err
	}
	replacements := map[string][]byte{}
	v.replace(&v.Config, replacements)
	cfg := config.Default()
	_, problems := yamlconf.Loader{Sources: yamlconf.SourcesWith(replacements)}.Decode(file, text, cfg)
	if len(problems) > 0 {
		var wrong []error
		for _, p := range problems { // without their lines, which are not lines of the file
			wrong = append(wrong, fmt.Errorf("%s: config.%s: %s", file, p.Path, p.Message))
		}
		return nil, errors.Join(wrong...)
	}
	if len(cfg.Tenants) == 0 {
		return nil, fmt.Errorf("%s: config.tenants is empty: there is nothing to convert", file)
	}
	return cfg, nil
}

// replace adds the content of all files in Secrets that a node names.
func (v *chartValues) replace(n *yaml.Node, replacements map[string][]byte) {
	if name, ok := strings.CutPrefix(n.Value, secretsFolder); ok && n.Kind == yaml.ScalarNode {
		entry, key := path.Split(name)
		secret := v.Secrets[strings.TrimSuffix(entry, "/")]
		switch content, known := secret.Data[key]; {
		case known:
			replacements[n.Value] = []byte(content)
		case slices.Contains([]string{".yaml", ".yml"}, path.Ext(key)):
			replacements[n.Value] = []byte("users: {}\n")
		default:
			replacements[n.Value] = []byte(n.Value)
		}
	}
	for _, inner := range n.Content {
		v.replace(inner, replacements)
	}
}

// existing returns the existing Secret for a file, or for a value that [chartValues.load] has replaced by its file.
func (v *chartValues) existing(file string) (manifest.SecretReference, bool) {
	name, ok := strings.CutPrefix(file, secretsFolder)
	if !ok {
		return manifest.SecretReference{}, false
	}
	entry, key := path.Split(name)
	entry = strings.TrimSuffix(entry, "/")
	if existing := v.Secrets[entry].ExistingSecret; existing != "" {
		return manifest.SecretReference{Name: existing, Key: key}, true
	}
	return manifest.SecretReference{Name: entry, Key: key}, true
}
