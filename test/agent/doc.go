// SPDX-License-Identifier: Apache-2.0

// Package agent holds the tests of the in-pod agent on real software: PHP,
// Laravel's own queue:work, Redis, MariaDB, PostgreSQL and beanstalkd, as
// ordinary processes. The short profile runs by default, QW_AGENT_TESTS=full
// runs every case at its full count.
package agent
