// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/hack/node/image"
)

// namespace is where everything but the operator lives.
const namespace = "default"

// The servers' addresses are fixed: there is no DNS on the node.
const (
	redisAddress    = "10.0.0.63"
	mariaAddress    = "10.0.0.33"
	providerAddress = "10.0.0.80"
)

const mariaSocket = "/data/socket"

// server is a pod that stays when the node is drained: one of a DaemonSet.
type server struct {
	name, image string
	command     []string
	address     string // of its Service; empty for none
	ports       []int32
	ready       []string // a command that succeeds once it works
}

var servers = []server{
	{
		name: "redis", image: "services", address: redisAddress, ports: []int32{6379},
		command: []string{"redis-server", "--save", "", "--appendonly", "no", "--protected-mode", "no", "--dir", "/data"},
		ready:   []string{"redis-cli", "ping"},
	},
	{
		name: "mariadb", image: "services", address: mariaAddress, ports: []int32{3306},
		command: []string{"/bin/sh", "-c", `set -e
mariadb-install-db --no-defaults --force --datadir=/data/db --skip-test-db --auth-root-authentication-method=normal >/dev/null
exec mariadbd --no-defaults --datadir=/data/db --socket=` + mariaSocket + ` --skip-name-resolve --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=2`},
		ready: []string{"mariadb", "--no-defaults", "-uroot", "-S", mariaSocket, "-e", "SELECT 1"},
	},
	{name: "provider", image: "provider", address: providerAddress, ports: []int32{8080, 8081}},
	{name: "console", image: "app", command: []string{"sleep", "infinity"}, ready: []string{"true"}},
}

// startServices starts the servers and waits until all of them work.
func startServices(ctx context.Context) error {
	for _, s := range servers {
		if err := apply(ctx, s.objects()...); err != nil {
			return err
		}
	}
	for _, s := range servers {
		if err := s.works(ctx); err != nil {
			return err
		}
	}
	_, err := mariaSQL(ctx, "CREATE USER shop@'%'; GRANT ALL ON *.* TO shop@'%'")
	return err
}

// works waits until it does.
func (s server) works(ctx context.Context) error {
	return await(ctx, patience, "server "+s.name+" works", func() error {
		if _, err := kubectl(ctx, "", "rollout", "status", "daemonset/"+s.name, "--timeout=60s"); err != nil || s.ready == nil {
			return err
		}
		_, err := execIn(ctx, s.name, s.ready...)
		return err
	})
}

// at is a server of the same kind elsewhere.
func (s server) at(name, address string) server {
	s.name, s.address = name, address
	return s
}

func (s server) objects() []any {
	labels := map[string]string{"server": s.name}
	var ports []corev1.ServicePort
	for _, port := range s.ports {
		ports = append(ports, corev1.ServicePort{Name: fmt.Sprint("port-", port), Port: port})
	}
	set := &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: namespace},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				EnableServiceLinks:            ptr.To(false),
				TerminationGracePeriodSeconds: ptr.To[int64](1),
				Containers: []corev1.Container{{
					Name: s.name, Image: image.Name(s.image), ImagePullPolicy: corev1.PullNever, Command: s.command,
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				}},
				Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			}},
		},
	}
	if s.address == "" {
		return []any{set}
	}
	return []any{set, &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: namespace},
		Spec:       corev1.ServiceSpec{ClusterIP: s.address, Selector: labels, Ports: ports},
	}}
}

// execIn runs a command in a server's container.
func execIn(ctx context.Context, server string, words ...string) (string, error) {
	return kubectl(ctx, "", append([]string{"exec", "daemonset/" + server, "--"}, words...)...)
}

func mariaSQL(ctx context.Context, statements string) (string, error) {
	out, err := execIn(ctx, "mariadb", "mariadb", "--no-defaults", "--batch", "--skip-column-names", "-uroot", "-S", mariaSocket, "-e", statements)
	return strings.TrimSpace(out), err
}
