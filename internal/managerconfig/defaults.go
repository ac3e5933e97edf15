// SPDX-License-Identifier: Apache-2.0

package managerconfig

import "github.com/queueworker/operator/internal/timeoutchain"

// Default is the configuration of an empty file.
func Default() Config {
	return Config{
		APIVersion:             APIVersion,
		Kind:                   Kind,
		WatchNamespaces:        []string{},
		ShutdownTimeoutSeconds: 20,
		Caps:                   Caps{GracePeriodSeconds: timeoutchain.DefaultGraceCap},
		Controller:             Controller{MaxConcurrentReconciles: 4},
		Webhook: Webhook{
			BindAddress:       ":9443",
			ConfigurationName: "queueworker-operator",
			ServiceName:       "queueworker-operator-webhook",
			Certificates: Certificates{
				Mode:       CertificatesSelf,
				SecretName: "queueworker-operator-webhook-cert",
				Directory:  "/etc/queueworker/webhook-certs",
			},
		},
		Metrics: Metrics{BindAddress: ":8443"},
		Health:  Health{BindAddress: ":8081"},
		LeaderElection: LeaderElection{
			Enabled:              true,
			LeaseName:            "queueworker-operator",
			LeaseDurationSeconds: 15,
			RenewDeadlineSeconds: 10,
			RetryPeriodSeconds:   2,
		},
		Logging: Logging{Format: "json", Level: "info"},
	}
}
