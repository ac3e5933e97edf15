<?php
// SPDX-License-Identifier: Apache-2.0
//
// Runs in place of the application's artisan, with the same steps, and attaches
// to the application before any of its providers does.

$artisan = realpath((string) getenv('QUEUEWORKER_ARTISAN'));
if ($artisan === false) {
    fwrite(STDERR, 'queueworker: there is no file '.getenv('QUEUEWORKER_ARTISAN').' in '.getcwd()."\n");
    exit(1);
}
foreach (['SCRIPT_NAME', 'SCRIPT_FILENAME', 'PHP_SELF', 'PATH_TRANSLATED'] as $name) {
    $_SERVER[$name] = getenv('QUEUEWORKER_ARTISAN');
}
$_SERVER['argv'][0] = $argv[0] = getenv('QUEUEWORKER_ARTISAN');
$base = dirname($artisan);
unset($artisan, $name);

define('LARAVEL_START', microtime(true));

require $base.'/vendor/autoload.php';

$app = require_once $base.'/bootstrap/app.php';

require __DIR__.'/worker.php';
\QueueWorker\Agent\Worker::attach($app);

$kernel = $app->make(\Illuminate\Contracts\Console\Kernel::class);

$status = $kernel->handle(
    $input = new \Symfony\Component\Console\Input\ArgvInput(),
    new \Symfony\Component\Console\Output\ConsoleOutput()
);

$kernel->terminate($input, $status);

exit($status);
