// SPDX-License-Identifier: Apache-2.0

package managerconfig

import (
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// Off as a metrics bind address means that nothing is served.
const Off = "0"

// Validate judges a configuration and reports every fault.
func Validate(c *Config) field.ErrorList {
	errs := oneOf(field.NewPath("apiVersion"), c.APIVersion, APIVersion)
	errs = append(errs, oneOf(field.NewPath("kind"), c.Kind, Kind)...)
	errs = append(errs, validateNamespaces(c)...)
	errs = append(errs, between(field.NewPath("caps", "gracePeriodSeconds"), c.Caps.GracePeriodSeconds, 1, timeoutchain.MaxSeconds)...)
	errs = append(errs, validateAgent(&c.Agent, field.NewPath("agent"))...)
	errs = append(errs, between(field.NewPath("controller", "maxConcurrentReconciles"), int64(c.Controller.MaxConcurrentReconciles), 1, 100)...)
	errs = append(errs, between(field.NewPath("shutdownTimeoutSeconds"), int64(c.ShutdownTimeoutSeconds), 1, 600)...)
	errs = append(errs, validateAddresses(c)...)
	errs = append(errs, validateWebhook(&c.Webhook, field.NewPath("webhook"))...)
	errs = append(errs, validateLeaderElection(&c.LeaderElection, field.NewPath("leaderElection"))...)
	errs = append(errs, oneOf(field.NewPath("logging", "format"), c.Logging.Format, "json", "console")...)
	return append(errs, oneOf(field.NewPath("logging", "level"), c.Logging.Level, "debug", "info", "error")...)
}

func validateNamespaces(c *Config) field.ErrorList {
	var errs field.ErrorList
	if c.Namespace != "" {
		errs = append(errs, namespaceName(field.NewPath("namespace"), c.Namespace)...)
	}
	seen := sets.New[string]()
	for i, namespace := range c.WatchNamespaces {
		path := field.NewPath("watchNamespaces").Index(i)
		errs = append(errs, namespaceName(path, namespace)...)
		if seen.Has(namespace) {
			errs = append(errs, field.Duplicate(path, namespace))
		}
		seen.Insert(namespace)
	}
	return errs
}

// validateAgent refuses what no API server takes as an image; everything else is
// for the registry to say, and shows in the pods.
func validateAgent(a *Agent, path *field.Path) field.ErrorList {
	if strings.ContainsFunc(a.Image, unicode.IsSpace) {
		return field.ErrorList{field.Invalid(path.Child("image"), a.Image, "must hold no blank; write it like registry.example/queueworker/operator:1.2.3")}
	}
	return nil
}

// validateAddresses also refuses a port that two endpoints share; a port of 0
// is refused, since nobody would learn which one was taken.
func validateAddresses(c *Config) field.ErrorList {
	var errs field.ErrorList
	owner := map[string]string{}
	for _, a := range []struct {
		path    *field.Path
		address string
	}{
		{field.NewPath("webhook", "bindAddress"), c.Webhook.BindAddress},
		{field.NewPath("metrics", "bindAddress"), c.Metrics.BindAddress},
		{field.NewPath("health", "bindAddress"), c.Health.BindAddress},
	} {
		if a.address == Off && strings.HasPrefix(a.path.String(), "metrics") {
			continue
		}
		_, port, err := net.SplitHostPort(a.address)
		if n, atoi := strconv.Atoi(port); err != nil || atoi != nil || n < 1 || n > 65535 {
			errs = append(errs, field.Invalid(a.path, a.address, "must be host:port or :port with a port from 1 to 65535, such as :9443"))
			continue
		}
		if other, taken := owner[port]; taken {
			errs = append(errs, field.Invalid(a.path, a.address, "has the same port as "+other+"; give each endpoint a port of its own"))
		}
		owner[port] = a.path.String()
	}
	return errs
}

func validateWebhook(w *Webhook, path *field.Path) field.ErrorList {
	errs := objectName(path.Child("configurationName"), w.ConfigurationName)
	if w.FailurePolicy != "" {
		errs = append(errs, oneOf(path.Child("failurePolicy"), w.FailurePolicy, "Ignore", "Fail")...)
	}
	certificates := path.Child("certificates")
	errs = append(errs, oneOf(certificates.Child("mode"), w.Certificates.Mode, CertificatesSelf, CertificatesProvided)...)
	switch w.Certificates.Mode {
	case CertificatesSelf:
		errs = append(errs, objectName(certificates.Child("secretName"), w.Certificates.SecretName)...)
		errs = append(errs, objectName(path.Child("serviceName"), w.ServiceName)...)
	case CertificatesProvided:
		if !filepath.IsAbs(w.Certificates.Directory) {
			errs = append(errs, field.Invalid(certificates.Child("directory"), w.Certificates.Directory, "must be an absolute path; it holds tls.crt and tls.key"))
		}
	}
	if w.URL != "" {
		errs = append(errs, validateURL(w, path.Child("url"))...)
	}
	return errs
}

func validateURL(w *Webhook, path *field.Path) field.ErrorList {
	u, err := url.Parse(w.URL)
	bare := err == nil && u.User == nil && u.RawQuery == "" && u.Fragment == "" && (u.Path == "" || u.Path == "/")
	switch {
	case !bare || u.Scheme != "https" || u.Hostname() == "":
		return field.ErrorList{field.Invalid(path, w.URL, "must be https://host:port without path, query or user, such as https://localhost:9443")}
	case w.Certificates.Mode == CertificatesSelf && net.ParseIP(u.Hostname()) != nil:
		return field.ErrorList{field.Invalid(path, w.URL, "must name a host, not an IP address: the manager's own certificate carries names only; use localhost, or certificates.mode Provided")}
	}
	return nil
}

func validateLeaderElection(l *LeaderElection, path *field.Path) field.ErrorList {
	if !l.Enabled {
		return nil
	}
	errs := objectName(path.Child("leaseName"), l.LeaseName)
	errs = append(errs, between(path.Child("retryPeriodSeconds"), int64(l.RetryPeriodSeconds), 1, 3600)...)
	if l.RenewDeadlineSeconds <= l.RetryPeriodSeconds {
		errs = append(errs, field.Invalid(path.Child("renewDeadlineSeconds"), l.RenewDeadlineSeconds,
			"must be above retryPeriodSeconds "+strconv.Itoa(int(l.RetryPeriodSeconds))+": the leader would give up before its second attempt"))
	}
	if l.LeaseDurationSeconds <= l.RenewDeadlineSeconds {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), l.LeaseDurationSeconds,
			"must be above renewDeadlineSeconds "+strconv.Itoa(int(l.RenewDeadlineSeconds))+": a second leader would start before the first gives up"))
	}
	return errs
}

func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" {
		texts := make([]string, len(allowed))
		for i, a := range allowed {
			texts[i] = string(a)
		}
		return field.ErrorList{field.Required(path, "set it to "+strings.Join(texts, " or "))}
	}
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func between(path *field.Path, value, low, high int64) field.ErrorList {
	if value >= low && value <= high {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "must be from "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10))}
}

func namespaceName(path *field.Path, value string) field.ErrorList {
	return invalid(path, value, validation.IsDNS1123Label(value))
}

func objectName(path *field.Path, value string) field.ErrorList {
	return invalid(path, value, validation.IsDNS1123Subdomain(value))
}

func invalid(path *field.Path, value string, problems []string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, value, problem))
	}
	return errs
}
