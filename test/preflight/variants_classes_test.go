// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preflight

import "github.com/queueworker/operator/internal/timeoutchain"

// functions is a file of the application's that Composer loads at once, since it
// holds no class. Its name could be that of one.
func functions(a *app) {
	a.write("app/helpers.php", "<?php\nfunction parcel_weight() { return 2; }\n")
	a.edit("vendor/autoload.php", "spl_autoload_register(", "require_once dirname(__DIR__).'/app/helpers.php';\nspl_autoload_register(")
}

var ofClasses = []variant{
	{
		name: "timeout in a property", rule: "job-not-below-retry-after",
		defect: func(a *app) { a.job("Export", "    public $timeout = 600;") },
		twin:   func(a *app) { a.job("Export", "    public $timeout = 30;") },
	},
	{
		name: "timeout inherited", rule: "job-not-below-retry-after",
		defect: func(a *app) {
			a.class("Jobs\\Slow", "implements ShouldQueue", "    public int $timeout = 600;")
			a.edit("app/Jobs/Slow.php", "class Slow", "abstract class Slow")
			a.class("Jobs\\Export", "extends Slow", "")
		},
		twin: func(a *app) { // abstract, and its child says otherwise
			a.class("Jobs\\Slow", "implements ShouldQueue", "    public int $timeout = 600;")
			a.edit("app/Jobs/Slow.php", "class Slow", "abstract class Slow")
			a.class("Jobs\\Export", "extends Slow", "    public int $timeout = 25;")
		},
	},
	{
		name: "timeout in a trait", rule: "job-not-below-retry-after",
		defect: func(a *app) {
			a.write("app/TakesLong.php", "<?php\nnamespace App;\ntrait TakesLong { public $timeout = 600; }\n")
			a.job("Export", "    use \\App\\TakesLong;")
		},
		twin: func(a *app) {
			a.write("app/TakesLong.php", "<?php\nnamespace App;\ntrait TakesLong { public $timeout = 30; }\n")
			a.job("Export", "    use \\App\\TakesLong;")
		},
	},
	{
		name: "timeout by a constant", rule: "job-not-below-retry-after",
		defect: func(a *app) { a.job("Export", "    const MINUTE = 60;\n    public $timeout = 2 * self::MINUTE;") },
	},
	{
		name: "timeout equal to the reservation", rule: "job-not-below-retry-after",
		defect: func(a *app) { a.job("Export", "    public $timeout = 90;") },
		twin: func(a *app) { // a job of another queue is another worker's
			a.job("Export", "    public $timeout = 90;\n    public $queue = 'exports';")
		},
	},
	{
		name: "timeout of a listener", rule: "job-not-below-retry-after",
		defect: func(a *app) {
			a.class("Listeners\\SendsReceipt", "implements ShouldQueue", "    public $timeout = 300;\n    public function handle($event) {}")
		},
		twin: func(a *app) {
			a.class("Listeners\\SendsReceipt", "", "    public $timeout = 300;\n    public function handle($event) {}")
		},
	},
	{
		name: "timeout only in the class map", rule: "job-not-below-retry-after",
		defect: func(a *app) {
			a.write("jobs/old.php", "<?php\nclass OldExport implements Illuminate\\Contracts\\Queue\\ShouldQueue { public $timeout = 600; }\n")
			a.edit("vendor/composer/autoload_classmap.php", "return [", "return ['OldExport' => dirname(__DIR__, 2).'/jobs/old.php',")
			a.edit("vendor/autoload.php", "spl_autoload_register(", "spl_autoload_register(static function ($c) { if ($c === 'OldExport') { require dirname(__DIR__).'/jobs/old.php'; } });\nspl_autoload_register(")
		},
	},
	{
		name: "no timeout", rule: "job-timeout-unbounded",
		defect: func(a *app) { a.job("Export", "    public $timeout = 0;") },
		twin:   func(a *app) { a.job("Export", "    public $timeout = null;") },
	},
	{
		name: "timeout with its unit", rule: "class-limit-not-a-number", severity: timeoutchain.Error,
		defect: func(a *app) { a.job("Export", "    public $timeout = '10 minutes';") },
		twin:   func(a *app) { a.job("Export", "    public $timeout = '30';") },
	},
	{
		name: "timeout with its unit, and a number before it", rule: "class-limit-not-a-number",
		defect: func(a *app) { a.job("Export", "    public $timeout = '25 seconds';") },
	},
	{
		name: "timeout in a list", rule: "class-limit-not-a-number",
		defect: func(a *app) { a.job("Export", "    public $timeout = [25];") },
		twin:   func(a *app) { a.job("Export", "    public $backoff = [10, '60'];") },
	},
	{
		name: "timeout empty", rule: "class-limit-not-a-number",
		defect: func(a *app) { a.job("Export", "    public $timeout = '';") },
	},
	{
		name: "timeout false", rule: "job-timeout-unbounded",
		defect: func(a *app) { a.job("Export", "    public $timeout = false;") },
	},
	{
		name: "tries in words", rule: "class-limit-not-a-number", severity: timeoutchain.Error,
		defect: func(a *app) { a.job("Export", "    public $tries = 'three';") },
		twin: func(a *app) {
			a.job("Export", "    public $queue = 'three', $tries = '3';")
			a.declared.Queues = []string{"default", "three"}
		},
	},
	{
		name: "backoff in words", rule: "class-limit-not-a-number", severity: timeoutchain.Warning,
		defect: func(a *app) { a.job("Export", "    public $backoff = '10,soon';") },
	},
	{
		name: "timeout above the declared, within the chain", rule: "class-timeout-over-declared",
		defect: func(a *app) { a.job("Export", "    public $timeout = 45;") },
	},
	{
		name: "timeout so long that a call at its end is past the reservation", rule: "blocked-call-past-reservation",
		defect: func(a *app) { a.job("Export", "    public $timeout = 75;") },
	},
	{
		name: "timeout below the calls", rule: "http-not-below-job",
		defect: func(a *app) { a.job("Ping", "    public $timeout = 10;") },
		twin:   func(a *app) { a.job("Ping", "    public $timeout = 26;") },
	},
	{
		name: "timeout set in the constructor", rule: "class-not-verified", unseen: true,
		defect: func(a *app) {
			a.job("Export", "    public $timeout = 600;\n    public function __construct() { $this->timeout = config('shop.timeout'); }")
		},
		twin: func(a *app) {
			a.job("Export", "    public $name;\n    public function __construct() { $this->name = 'timeout'; /* $this->timeout = 600 */ if ('$this->timeout = 5' == $this->name) { } }")
		},
	},
	{
		name: "timeout set in an inherited constructor", rule: "class-not-verified", unseen: true,
		defect: func(a *app) {
			a.class("Jobs\\Slow", "implements ShouldQueue", "    public $tries;\n    public function __construct() { $this->tries = 7; }")
			a.edit("app/Jobs/Slow.php", "class Slow", "abstract class Slow")
			a.class("Jobs\\Export", "extends Slow", "    public function __construct() { parent::__construct(); }")
		},
		twin: func(a *app) { // the inherited constructor never runs
			a.class("Jobs\\Slow", "implements ShouldQueue", "    public $tries;\n    public function __construct() { $this->tries = 7; }")
			a.edit("app/Jobs/Slow.php", "class Slow", "abstract class Slow")
			a.class("Jobs\\Export", "extends Slow", "    public function __construct() { }")
		},
	},
	{
		name: "timeout promoted in the constructor", rule: "class-not-verified", unseen: true,
		defect: func(a *app) { a.job("Export", "    public function __construct(public int $timeout = 600) {}") },
		twin: func(a *app) {
			a.job("Export", "    public function __construct(public int $order = 600, int $timeout = 5) {}")
		},
	},
	{
		name: "retryUntil", rule: "class-not-verified", unseen: true,
		defect: func(a *app) {
			a.job("Export", "    public $tries = 0;\n    public function retryUntil() { return now()->addDay(); }")
		},
	},
	{
		name: "backoff by a method", rule: "class-not-verified", unseen: true,
		defect: func(a *app) { a.job("Export", "    public function backoff() { return [1, 5]; }") },
	},
	{
		name: "timeout that is not public", rule: "class-limit-hidden",
		defect: func(a *app) { a.job("Export", "    protected $timeout = 600;") },
		twin:   func(a *app) { a.job("Export", "    public $timeout = 25;") },
	},
	{
		name: "tries without end", rule: "retries-unbounded",
		defect: func(a *app) { a.job("Export", "    public $tries = 0;") },
		twin:   func(a *app) { a.job("Export", "    public $tries = 5;") },
	},
	{
		name: "backoff with steps that no try reaches", rule: "backoff-beyond-tries",
		defect: func(a *app) { a.job("Export", "    public $tries = 2;\n    public $backoff = [10, 60, 300];") },
		twin:   func(a *app) { a.job("Export", "    public $tries = 4;\n    public $backoff = [10, 60, 300];") },
	},
	{
		name: "backoff that never grows", rule: "backoff-flat",
		defect: func(a *app) { a.job("Export", "    public $backoff = 3;") },
		twin:   func(a *app) { a.job("Export", "    public $backoff = '3,30';") },
	},
	{
		name: "a unique lock shorter than the retries", rule: "unique-lock-shorter-than-retries",
		defect: func(a *app) {
			a.class("Jobs\\Export", "implements ShouldQueue, ShouldBeUnique", "    public $uniqueFor = 60;")
		},
		twin: func(a *app) {
			a.class("Jobs\\Export", "implements ShouldQueue, ShouldBeUnique", "    public $uniqueFor = 3600;")
		},
	},
	{
		name: "tries past the life of the provider's key", rule: "key-ttl-below-retry-window",
		defect: func(a *app) { a.declared.ProviderKeyTTL = count(3600); a.job("Export", "    public $tries = 50;") },
		twin:   func(a *app) { a.declared.ProviderKeyTTL = count(3600); a.job("Export", "    public $tries = 5;") },
	},
	{
		name: "a class whose parent is missing", rule: "class-broken", unseen: true,
		defect: func(a *app) { a.class("Jobs\\Export", "extends \\Lost\\Job", "") },
	},
	{
		name: "a class whose trait is missing", rule: "class-broken", unseen: true,
		defect: func(a *app) { a.job("Export", "    use \\Lost\\Concern;") },
	},
	{
		name: "a file that ends the process", rule: "class-broken", unseen: true,
		defect: func(a *app) {
			a.write("app/Jobs/Export.php", "<?php\nif (!isset($web)) { exit('only for the web'); }\n")
		},
		twin: func(a *app) {
			a.write("app/helpers.php", "<?php\nif (!function_exists('shop')) { function shop() {} }\n")
		},
	},
	{
		name: "a file that is not PHP", rule: "class-broken", unseen: true,
		defect: func(a *app) { a.write("app/Jobs/Export.php", "<?php\nclass Export {\n") },
	},
	{
		name: "a file of functions that are there already", rule: "class-broken", unseen: true,
		defect: func(a *app) { functions(a); a.write("app/more.php", "<?php\nfunction parcel_weight() { return 3; }\n") },
		twin:   functions,
	},
	{
		name: "a defect behind four broken files", rule: "job-not-below-retry-after",
		defect: func(a *app) {
			for _, name := range []string{"A", "B", "C", "D"} {
				a.job(name, "    use \\Lost\\Concern;")
			}
			a.job("Zero", "    public $timeout = 600;")
		},
	},
}
