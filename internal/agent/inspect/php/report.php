<?php
// SPDX-License-Identifier: Apache-2.0

namespace QueueWorker\Facts;

/** Records on file descriptor 3, one JSON object a line. The last one says how it ended. */
final class Report
{
    private const LONGEST_MESSAGE = 400;

    private const SECRET = '/PASS|SECRET|TOKEN|KEY$|CREDENTIAL|DSN|URL$/i';

    /** The application's directory, taken off the names of its files. */
    public static $base = '';

    private static $stage = '';

    private static $pid = 0;

    private static $ended = false;

    private static $out;

    /** Values that may not leave in an error's text. */
    private static $secrets = [];

    public static function open(string $stage): void
    {
        self::$stage = $stage;
        self::$pid = getmypid();
        self::$out = @fopen('php://fd/3', 'w');
        // What no catch can see: a fatal error, or an exit in the application's own code.
        register_shutdown_function(function () {
            if (self::$ended || getmypid() !== self::$pid) {
                return;
            }
            $fatal = error_get_last();
            if ($fatal !== null && ($fatal['type'] & (E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR))) {
                self::record('failed', self::error('', $fatal['message'], $fatal['file'], $fatal['line']));
            } else {
                self::record('exited', []);
            }
        });
    }

    public static function record(string $kind, array $facts): void
    {
        $record = ['v' => 1, 'kind' => $kind, 'stage' => self::$stage, 'facts' => (object) $facts];
        $line = json_encode($record, JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE)."\n";
        // A closed one may have become a file that PHP itself reads.
        if (!self::$out || !@fwrite(self::$out, $line)) {
            self::$ended = true;
            fwrite(STDERR, "queueworker: file descriptor 3 is closed; what starts PHP must leave it open\n");
            exit(1);
        }
    }

    public static function end(): void
    {
        self::record('end', []);
        self::$ended = true;
    }

    public static function failed(\Throwable $e): void
    {
        self::record('failed', self::errorOf($e));
        self::$ended = true;
    }

    /** The error that an exception is about, and the classes of those it was wrapped in. */
    public static function errorOf(\Throwable $e): array
    {
        $classes = [];
        for ($cause = $e; $cause !== null; $cause = $cause->getPrevious()) {
            $classes[] = get_class($cause);
        }

        return self::error(implode(' ', $classes), $e->getMessage(), $e->getFile(), $e->getLine());
    }

    private static function error(string $classes, string $message, string $file, int $line): array
    {
        $lines = preg_split('/\R/', trim($message));

        return [
            'class' => $classes,
            'message' => substr(self::withoutSecrets($lines[0]), 0, self::LONGEST_MESSAGE),
            'file' => self::relative($file),
            'line' => $line,
        ];
    }

    public static function relative(string $file): string
    {
        return self::$base !== '' && strpos($file, self::$base.'/') === 0 ? substr($file, strlen(self::$base) + 1) : $file;
    }

    /** Passwords and the like, wherever the configuration holds them. */
    public static function hide(array $values): void
    {
        array_walk_recursive($values, function ($value, $name) {
            if (is_string($value) && strlen($value) > 3 && preg_match(self::SECRET, (string) $name)) {
                self::$secrets[] = $value;
            }
        });
    }

    /** An error's text is the application's own, and may quote what it was configured with. */
    private static function withoutSecrets(string $text): string
    {
        self::hide(getenv() + $_ENV);

        return preg_replace('~://[^/\s@]+@~', '://***@', str_replace(self::$secrets, '***', $text));
    }
}
