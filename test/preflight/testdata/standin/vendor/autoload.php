<?php
// Stands in for Composer and for a newer Laravel than the one of the system's
// packages: as much of it as reading the configuration and the job classes
// needs. LARAVEL_VERSION is the version it claims to be; the attributes of
// Laravel 13 are there from 13 on only. Nothing of it can run a job.

namespace Illuminate\Contracts\Queue {
    interface ShouldQueue {}
    interface ShouldBeUnique {}
}

namespace Illuminate\Contracts\Console {
    class Kernel
    {
        private $app;

        public function __construct($app)
        {
            $this->app = $app;
        }

        public function bootstrap(): void
        {
            $this->app->bootstrapWith([]);
        }
    }
}

namespace Illuminate\Foundation {
    class Application implements \ArrayAccess
    {
        private $base;

        private $services = [];

        private $after = [];

        public function __construct(string $base)
        {
            $this->base = $base;
        }

        public function version(): string
        {
            return (string) getenv('LARAVEL_VERSION');
        }

        public function afterBootstrapping(string $step, callable $do): void
        {
            $this->after[] = $do;
        }

        public function bootstrapWith(array $steps): void
        {
            $config = [];
            foreach (glob($this->base.'/config/*.php') as $file) {
                $config[basename($file, '.php')] = require $file;
            }
            $this->services = ['config' => new Repository($config), 'queue' => new \StandIn\Queues()];
            foreach ($this->after as $do) {
                $do($this);
            }
        }

        public function make(string $class)
        {
            return new $class($this);
        }

        public function configurationIsCached(): bool
        {
            return false;
        }

        public function offsetExists($name): bool
        {
            return isset($this->services[$name]);
        }

        #[\ReturnTypeWillChange]
        public function offsetGet($name)
        {
            return $this->services[$name];
        }

        public function offsetSet($name, $value): void {}

        public function offsetUnset($name): void {}
    }

    class Repository
    {
        private $values;

        public function __construct(array $values)
        {
            $this->values = $values;
        }

        public function all(): array
        {
            return $this->values;
        }

        public function get(string $name)
        {
            $value = $this->values;
            foreach (explode('.', $name) as $step) {
                $value = $value[$step] ?? null;
            }

            return $value;
        }
    }
}

namespace Illuminate\Support {
    class Str
    {
        public static function is(string $pattern, string $text): bool
        {
            return fnmatch($pattern, $text);
        }

        public static function camel(string $text): string
        {
            return lcfirst(str_replace('_', '', ucwords($text, '_')));
        }
    }
}

namespace Composer {
    class InstalledVersions
    {
        public static function isInstalled(string $package): bool
        {
            return $package === 'laravel/horizon' && getenv('HORIZON_VERSION') !== false;
        }

        public static function getPrettyVersion(string $package): string
        {
            return (string) getenv('HORIZON_VERSION');
        }
    }
}

namespace StandIn {
    /** A queue on SQS whose client answers with SQS_VISIBILITY, or refuses. */
    class Queues
    {
        public function connection($name)
        {
            return $this;
        }

        public function getSqs()
        {
            return $this;
        }

        public function getQueue($name)
        {
            return 'https://sqs.example/1/'.$name;
        }

        public function getQueueAttributes(array $ask): array
        {
            if (getenv('SQS_VISIBILITY') === false) {
                throw new \RuntimeException('AccessDenied: no sqs:GetQueueAttributes');
            }

            return ['Attributes' => ['VisibilityTimeout' => getenv('SQS_VISIBILITY')]];
        }
    }
}

namespace {
    function env(string $name, $default = null)
    {
        $value = getenv($name);

        return $value === false ? $default : $value;
    }

    spl_autoload_register(static function (string $class): void {
        $known = ['Timeout', 'Tries', 'Backoff', 'UniqueFor', 'Queue', 'Connection'];
        $short = substr((string) strrchr($class, '\\'), 1);
        if (strpos($class, 'Illuminate\\Queue\\Attributes\\') === 0 && in_array($short, $known, true) && version_compare((string) getenv('LARAVEL_VERSION'), '13.0', '>=')) {
            eval("namespace Illuminate\\Queue\\Attributes; #[\\Attribute] class $short { public function __construct(public \$value) {} }");
        } elseif (strpos($class, 'App\\') === 0 && is_file($file = dirname(__DIR__).'/app/'.str_replace('\\', '/', substr($class, 4)).'.php')) {
            require $file;
        }
    });
}
