// SPDX-License-Identifier: Apache-2.0

package laravel

// Horizon is one `php artisan horizon`. Its workers take their options from
// config/horizon.php, so there is nothing else to say here.
type Horizon struct {
	PHP       string   // the php binary
	Artisan   string   // the artisan file
	ExtraArgs []string // appended as they are
}

// Command is the command line.
func (h Horizon) Command() []string {
	return append([]string{h.PHP, h.Artisan, "horizon"}, h.ExtraArgs...)
}
