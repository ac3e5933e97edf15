<?php
// Stands in for Composer's: the framework is Debian's package, or the one that
// LARAVEL_AUTOLOAD names.

$framework = getenv('LARAVEL_AUTOLOAD') ?: '/usr/share/php/Illuminate/autoload.php';
if (!is_file($framework)) {
    fwrite(STDERR, "no Laravel at $framework: apt-get install php-laravel-framework\n");
    exit(1);
}
require_once $framework;
if (is_file('/usr/share/php/Pheanstalk/autoload.php')) { // php-pda-pheanstalk, for beanstalkd only
    require_once '/usr/share/php/Pheanstalk/autoload.php';
}

spl_autoload_register(static function (string $class): void {
    if ($class === 'Illuminate\\Contracts\\Queue\\Interruptible') {
        require __DIR__.'/Interruptible.php';
    }
    if (strncmp($class, 'App\\', 4) === 0) {
        $file = dirname(__DIR__).'/app/'.str_replace('\\', '/', substr($class, 4)).'.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
