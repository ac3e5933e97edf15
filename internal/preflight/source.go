// SPDX-License-Identifier: Apache-2.0

package preflight

import "fmt"

// source says where a value of the configuration comes from: the cached
// configuration, the file, or what the application did while it started.
func (in *inspection) source(key string, of func(*App) string) string {
	light := in.facts.Light.App
	switch {
	case light != nil && of(light) != of(in.app):
		return fmt.Sprintf("%s as the application sets it while it starts (its files say %s)", key, of(light))
	case in.app.Laravel.CachedConfig != "":
		return fmt.Sprintf("%s in the cached configuration %s", key, in.app.Laravel.CachedConfig)
	default:
		return key + " in config/queue.php"
	}
}

// key is a key of the queue connection.
func (in *inspection) key(name string) string {
	return fmt.Sprintf("queue.connections.%s.%s", in.app.Queue.Connection, name)
}

// fileToChange is where a value of the connection has to be set.
func (in *inspection) fileToChange() string {
	if in.app.Laravel.CachedConfig != "" {
		return "config/queue.php and build the configuration cache anew (php artisan config:cache)"
	}
	return "config/queue.php"
}
