<?php
// SPDX-License-Identifier: Apache-2.0
//
// PHP runs this before every script of the container (auto_prepend_file). It
// attaches to Horizon's workers, which Horizon starts itself, and leaves every
// other script alone.

(static function () {
    $argv = $_SERVER['argv'] ?? [];
    if (PHP_SAPI !== 'cli' || basename($argv[0] ?? '') !== 'artisan' || ($argv[1] ?? '') !== 'horizon:work') {
        return;
    }
    $autoload = dirname((string) realpath($argv[0])).'/vendor/autoload.php';
    if (!is_file($autoload)) {
        return;
    }
    // Composer puts its loader in front, so it has to be there before ours.
    // Ours stays: PHP skips the next loader when one takes itself away.
    require_once $autoload;
    $attached = false;
    spl_autoload_register(static function (string $class) use (&$attached) {
        // Loaded after the configuration and before the application's providers.
        if (!$attached && $class === 'Illuminate\\Foundation\\Bootstrap\\RegisterProviders') {
            $attached = true;
            require_once __DIR__.'/worker.php';
            \QueueWorker\Agent\Worker::attach(\Illuminate\Container\Container::getInstance());
        }
    }, true, true);
})();
