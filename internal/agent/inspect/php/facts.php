<?php
// SPDX-License-Identifier: Apache-2.0
//
// Says what a queue worker in this image would run with. It reads and changes
// nothing, judges nothing, and prints only values that are named here. Syntax
// of PHP 7.3, since Laravel 8 runs there.
//
// The one argument is a JSON object:
//     stage       light: the configuration as the files say it; booted: as it is
//                 after the application's own start; classes: nothing of it
//     classes     whether to list the job classes
//     artisan     the application's artisan
//     connection  the queue connection, empty for the application's default
//     queue       the queue whose limits SQS is asked for, empty for the default
//     options     options of the worker that decide which configuration it reads
//     skip        how many classes an earlier process has dealt with
//     fence       {table, key} of the application's fence table
// Facts leave by file descriptor 3, so that nothing that the application prints
// can be mixed with them.

namespace QueueWorker\Facts;

require __DIR__.'/report.php';
require __DIR__.'/configuration.php';
require __DIR__.'/horizon.php';
require __DIR__.'/classes.php';
require __DIR__.'/servers.php';

(static function (array $words) {
    ini_set('display_errors', 'stderr');
    ini_set('html_errors', '0');
    $ask = json_decode($words[1] ?? '', true);
    Report::open(is_array($ask) ? $ask['stage'] : '');
    if (!is_array($ask)) {
        Report::failed(new \RuntimeException('the question is not JSON'));

        return;
    }
    $artisan = realpath($ask['artisan']);
    if ($artisan === false || !is_file(dirname($artisan).'/vendor/autoload.php')) {
        $missing = $artisan === false ? $ask['artisan'] : dirname($artisan).'/vendor/autoload.php';
        Report::record('missing', ['file' => $missing, 'directory' => (string) getcwd()]);
        Report::end();

        return;
    }
    // As in the worker, for what reads the command line: --env is among the options.
    $_SERVER['argv'] = $GLOBALS['argv'] = array_merge([$ask['artisan']], $ask['options']);
    $_SERVER['argc'] = $GLOBALS['argc'] = count($_SERVER['argv']);
    foreach (['SCRIPT_NAME', 'SCRIPT_FILENAME', 'PHP_SELF', 'PATH_TRANSLATED'] as $name) {
        $_SERVER[$name] = $ask['artisan'];
    }
    defined('LARAVEL_START') || define('LARAVEL_START', microtime(true));

    try {
        require dirname($artisan).'/vendor/autoload.php';
        $app = require dirname($artisan).'/bootstrap/app.php';
        Report::$base = dirname($artisan);
        $app->afterBootstrapping('Illuminate\\Foundation\\Bootstrap\\LoadConfiguration', static function ($app) {
            Report::hide($app['config']->all());
        });
        if ($ask['stage'] === 'booted') {
            $app->make('Illuminate\\Contracts\\Console\\Kernel')->bootstrap();
        } else { // no provider runs
            $app->bootstrapWith([
                'Illuminate\\Foundation\\Bootstrap\\LoadEnvironmentVariables',
                'Illuminate\\Foundation\\Bootstrap\\LoadConfiguration',
            ]);
        }
        if ($ask['stage'] !== 'classes') {
            Report::record('app', Configuration::of($app, $ask));
        }
        if ($ask['stage'] === 'booted') {
            Servers::report($app, $ask);
        }
        if ($ask['classes']) {
            Classes::report(dirname($artisan), $ask['skip']);
        }
        Report::end();
    } catch (\Throwable $e) {
        Report::failed($e);
    }
})($argv);
