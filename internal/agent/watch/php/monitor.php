<?php
// SPDX-License-Identifier: Apache-2.0
//
// Looks at the queues of this application, once for every line that it reads,
// until there are no more lines. It changes nothing and judges nothing. What it
// says is numbers, names of queues and names of classes: no payload, and no text
// of an exception. Syntax of PHP 7.3, since Laravel 8 runs there.
//
// The one argument is a JSON object:
//     artisan     the application's artisan
//     options     the words after it
//     connection  the queue connection, empty for the application's default
//     queues      names, empty for the connection's own
//     horizon     whether Horizon runs the workers
//     retryAfter  the declared reservation in seconds, 0 for the configured one
//     cursor      where the last look at the failed jobs ended, empty for none
// Records leave by file descriptor 3, so that nothing that the application
// prints can be mixed with them.

namespace QueueWorker\Monitor;

require __DIR__.'/report.php';
require __DIR__.'/watch.php';
require __DIR__.'/queues.php';
require __DIR__.'/failures.php';

(static function (array $words) {
    ini_set('display_errors', 'stderr');
    ini_set('html_errors', '0');
    // A server that does not answer is a fact that somebody waits for.
    ini_set('default_socket_timeout', '5');
    ini_set('mysqlnd.net_read_timeout', '5');
    $ask = json_decode($words[1] ?? '', true);
    Report::open();
    if (!is_array($ask)) {
        Report::failed('RuntimeException', 'the question is not JSON');

        return;
    }
    $artisan = realpath($ask['artisan']);
    if ($artisan === false || !is_file(dirname($artisan).'/vendor/autoload.php')) {
        Report::failed('RuntimeException', 'there is no artisan with its vendor/autoload.php in the working directory');

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
        $app->make('Illuminate\\Contracts\\Console\\Kernel')->bootstrap();
        $watch = new Watch($app, $ask);
    } catch (\Throwable $e) {
        Report::failed(get_class($e), Report::hint($e));

        return;
    }
    while (fgets(STDIN) !== false) {
        Report::record('look', $watch->look());
    }
})($argv);
