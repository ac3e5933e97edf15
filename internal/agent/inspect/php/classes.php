<?php
// SPDX-License-Identifier: Apache-2.0

namespace QueueWorker\Facts;

/**
 * The application's own queued classes and the limits they set for themselves.
 * Classes are loaded, never made. A file that ends the process is named by the
 * record before it, and another process goes on behind it.
 */
final class Classes
{
    /** The limit, and the attribute that sets it from Laravel 13 on. */
    private const LIMITS = [
        'timeout' => 'Timeout', 'tries' => 'Tries', 'backoff' => 'Backoff', 'uniqueFor' => 'UniqueFor',
        'queue' => 'Queue', 'connection' => 'Connection',
    ];

    /** Limits that are names. */
    private const NAMES = ['queue', 'connection'];

    private const ATTRIBUTES = 'Illuminate\\Queue\\Attributes\\';

    public static function report(string $base, int $skip): void
    {
        Report::$base = $base;
        foreach (array_slice(self::candidates($base), $skip) as $class => $file) {
            Report::record('loading', ['class' => $class, 'file' => Report::relative($file)]);
            try {
                if (!self::isOther($class, $file) && class_exists($class) && self::isQueued($class)) {
                    Report::record('class', self::facts(new \ReflectionClass($class)));
                }
            } catch (\Throwable $e) {
                Report::record('broken', ['name' => $class] + Report::errorOf($e));
            }
        }
    }

    /** A file that is loaded already without giving this class, such as one of functions. Loading it again may be fatal. */
    private static function isOther(string $class, string $file): bool
    {
        return !class_exists($class, false) && in_array(realpath($file), get_included_files(), true);
    }

    private static function isQueued(string $class): bool
    {
        $type = new \ReflectionClass($class);

        return !$type->isAbstract() && $type->implementsInterface('Illuminate\\Contracts\\Queue\\ShouldQueue');
    }

    /** Class names and their files, from Composer's own maps, the same each time. */
    private static function candidates(string $base): array
    {
        $maps = $base.'/vendor/composer/autoload_';
        $classes = [];
        foreach (is_file($maps.'psr4.php') ? require $maps.'psr4.php' : [] as $prefix => $directories) {
            foreach ((array) $directories as $directory) {
                $directory = (string) realpath($directory);
                if (self::isOwn($base, $directory)) {
                    $classes += self::below($prefix, $directory);
                }
            }
        }
        foreach (is_file($maps.'classmap.php') ? require $maps.'classmap.php' : [] as $class => $file) {
            if (self::isOwn($base, $file)) {
                $classes[$class] = $file;
            }
        }
        ksort($classes);

        return $classes;
    }

    private static function isOwn(string $base, string $path): bool
    {
        return strpos($path, $base.'/') === 0 && strpos($path, $base.'/vendor/') !== 0;
    }

    private static function below(string $prefix, string $directory): array
    {
        $classes = [];
        $files = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($directory, \FilesystemIterator::SKIP_DOTS));
        foreach ($files as $file) {
            $path = $file->getPathname();
            $name = $prefix.str_replace('/', '\\', substr($path, strlen($directory) + 1, -4));
            if (substr($path, -4) === '.php' && preg_match('/^[\w\\\\]+$/', $name)) {
                $classes[$name] = $path;
            }
        }

        return $classes;
    }

    private static function facts(\ReflectionClass $type): array
    {
        $facts = ['name' => $type->getName(), 'file' => Report::relative((string) $type->getFileName())];
        foreach (self::LIMITS as $property => $attribute) {
            $facts[$property] = self::limit($type, $property, $attribute);
        }

        return $facts + [
            'unique' => $type->implementsInterface('Illuminate\\Contracts\\Queue\\ShouldBeUnique'),
            'retryUntil' => $type->hasMethod('retryUntil') || ($type->getDefaultProperties()['retryUntil'] ?? null) !== null,
            'methods' => array_values(array_filter(['tries', 'backoff', 'uniqueFor'], [$type, 'hasMethod'])),
            'assigned' => self::assigned($type),
            'hidden' => self::hidden($type),
        ];
    }

    /** The nearest class that says it, by attribute or public property, whose value and place are given. */
    private static function limit(\ReflectionClass $type, string $property, string $attribute): ?array
    {
        for ($level = $type; $level; $level = $level->getParentClass()) {
            $arguments = self::attribute($level, $attribute);
            if ($arguments !== null) {
                return self::found($property, $arguments, '#['.$attribute.']', $level);
            }
            if (!$level->hasProperty($property)) {
                continue;
            }
            $declared = $level->getProperty($property);
            $value = $level->getDefaultProperties()[$property] ?? null;
            if ($declared->getDeclaringClass()->getName() === $level->getName() && $declared->isPublic() && !$declared->isStatic() && $value !== null) {
                return self::found($property, [$value], '$'.$property, $level);
            }
        }

        return null;
    }

    /** Numbers, and in the text what is none; of names the text only. */
    private static function found(string $limit, array $values, string $by, \ReflectionClass $level): array
    {
        $numbers = $texts = [];
        foreach ($limit === 'backoff' ? self::steps($values) : [reset($values)] as $value) {
            if (in_array($limit, self::NAMES, true)) {
                $texts[] = is_object($value) ? (string) ($value->value ?? $value->name ?? '') : Configuration::text($value);
            } elseif (is_bool($value) || is_numeric($value)) {
                $numbers[] = (int) $value;
            } else {
                $texts[] = is_string($value) ? '"'.substr($value, 0, 60).'"' : (is_array($value) ? 'a list' : strtolower(gettype($value)));
            }
        }

        return [
            'numbers' => $numbers, 'text' => implode(',', $texts), 'by' => $by,
            'in' => $level->getName(), 'file' => Report::relative((string) $level->getFileName()),
        ];
    }

    /** Steps may be a list, a text with commas, or the attribute's arguments. */
    private static function steps(array $values): array
    {
        $steps = [];
        array_walk_recursive($values, function ($value) use (&$steps) {
            array_push($steps, ...(is_string($value) ? explode(',', $value) : [$value]));
        });

        return $steps;
    }

    /** The arguments of an attribute on a class or one of its traits, where the framework knows it. */
    private static function attribute(\ReflectionClass $level, string $name): ?array
    {
        if (!method_exists($level, 'getAttributes') || !class_exists(self::ATTRIBUTES.$name)) {
            return null;
        }
        foreach (array_merge([$level], array_values($level->getTraits())) as $place) {
            foreach ($place->getAttributes(self::ATTRIBUTES.$name) as $attribute) {
                return $attribute->getArguments();
            }
        }

        return null;
    }

    /** Limits that a constructor sets, so that no reader of the class knows them. */
    private static function assigned(\ReflectionClass $type): array
    {
        $names = [];
        for ($level = $type; $level; $level = $level->getParentClass()) {
            $constructor = $level->getConstructor();
            if ($constructor === null || !is_file((string) $constructor->getFileName())) {
                break;
            }
            $lines = array_slice(file($constructor->getFileName()), $constructor->getStartLine() - 1, $constructor->getEndLine() - $constructor->getStartLine() + 1);
            $source = self::code(implode('', $lines));
            foreach (array_keys(self::LIMITS) as $name) {
                if (preg_match('/\$this->'.$name.'\s*(?:\?\?)?=(?![=>])/', $source) || self::promotes($constructor, $name)) {
                    $names[] = $name;
                }
            }
            if (strpos($source, 'parent::__construct') === false) {
                break;
            }
            $level = $constructor->getDeclaringClass();
        }

        return array_values(array_unique($names));
    }

    private static function promotes(\ReflectionMethod $constructor, string $name): bool
    {
        foreach ($constructor->getParameters() as $parameter) {
            if ($parameter->getName() === $name && method_exists($parameter, 'isPromoted') && $parameter->isPromoted()) {
                return true;
            }
        }

        return false;
    }

    /** Source without comments and strings. */
    private static function code(string $source): string
    {
        if (!function_exists('token_get_all')) {
            return $source;
        }
        $code = '';
        foreach (token_get_all('<?php '.$source) as $token) {
            if (!is_array($token)) {
                $code .= $token;
            } elseif (!in_array($token[0], [T_COMMENT, T_DOC_COMMENT, T_CONSTANT_ENCAPSED_STRING], true)) {
                $code .= $token[1];
            }
        }

        return $code;
    }

    /** Limits in properties that are not public, which the queue does not see. */
    private static function hidden(\ReflectionClass $type): array
    {
        $names = [];
        foreach (['timeout', 'tries', 'backoff', 'uniqueFor'] as $name) {
            if ($type->hasProperty($name) && !$type->getProperty($name)->isPublic() && ($type->getDefaultProperties()[$name] ?? null) !== null) {
                $names[] = $name;
            }
        }

        return $names;
    }
}
