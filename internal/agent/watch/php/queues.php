<?php
// SPDX-License-Identifier: Apache-2.0

namespace QueueWorker\Monitor;

/** The numbers of a queue, as each driver tells them. What it cannot tell is null. */
abstract class Queues
{
    protected const NOTHING = [
        'ready' => null, 'delayed' => null, 'due' => null, 'reserved' => null, 'expired' => null,
        'oldest' => null, 'head' => '', 'held' => '',
    ];

    protected $app;

    protected $connection;

    protected $config;

    final public function __construct($app, string $connection, array $config)
    {
        $this->app = $app;
        $this->connection = $connection;
        $this->config = $config;
    }

    public static function of($app, string $connection, array $config): self
    {
        $drivers = ['redis' => Redis::class, 'database' => Database::class, 'sqs' => Sqs::class, 'beanstalkd' => Beanstalkd::class];
        $class = $drivers[$config['driver']] ?? Sized::class;

        return new $class($app, $connection, $config);
    }

    abstract public function numbers(string $name): array;

    /** The next question makes a connection of its own. */
    public function forget(): void
    {
        $name = $this->connection;
        $forget = function () use ($name) {
            unset($this->connections[$name]);
        };
        $manager = $this->app['queue'];
        $forget->bindTo($manager, get_class($manager))();
    }

    /** How the driver itself calls the queue. */
    public function address(string $name): string
    {
        try {
            $queue = $this->queue();

            return method_exists($queue, 'getQueue') ? (string) $queue->getQueue($name) : $name;
        } catch (\Throwable $e) {
            return $name;
        }
    }

    protected function queue()
    {
        return $this->app['queue']->connection($this->connection);
    }
}

final class Redis extends Queues
{
    /** All numbers at one moment. A key of a wrong kind loses its own number only; the payload stays in the server. */
    private const LOOK = <<<'LUA'
local function number(...)
    local reply = redis.pcall(...)
    return type(reply) == 'number' and reply or -1
end
local function list(...)
    local reply = redis.pcall(...)
    return type(reply) == 'table' and not reply.err and reply or {}
end
local function due(key) -- when its first job came due
    return list('zrangebyscore', key, '-inf', ARGV[1], 'withscores', 'limit', 0, 1)[2] or ''
end
local function ends(job) -- tell it from the others; the server does nothing else while it reads a long one
    return #job > 2000 and #job .. job:sub(1, 1000) .. job:sub(-1000) or job
end
local function holder(at)
    local job = list('zrange', KEYS[3], at, at, 'withscores')
    return job[1] and ends(job[1]) .. ' ' .. job[2] or ''
end
local head = redis.pcall('lindex', KEYS[1], 0)
local mark, since = '', ''
if type(head) == 'string' then
    mark = redis.sha1hex(ends(head))
    local ok, job = pcall(cjson.decode, #head <= 100000 and head or '')
    if ok and type(job) == 'table' and (tonumber(job['attempts']) or 0) == 0 then -- one that was put back does not say when
        local delay, made = tonumber(job['delay']), tonumber(job['createdAt'])
        if job['pushedAt'] ~= nil then -- by Horizon, which may leave the delay out: no delay is not known to be none
            made = delay and tonumber(job['pushedAt'])
        end
        local time = made and made + (delay or 0)
        if time and time > 0 and time < 1e11 then since = tostring(math.floor(time)) end
    end
end
local reserved = number('zcard', KEYS[3])
return {
    number('llen', KEYS[1]), number('zcard', KEYS[2]), number('zcount', KEYS[2], '-inf', ARGV[1]),
    reserved, number('zcount', KEYS[3], '-inf', ARGV[1]), mark, reserved > 0 and redis.sha1hex(reserved .. ' ' .. holder(0) .. ' ' .. holder(-1)) or '',
    since, due(KEYS[2]), due(KEYS[3])
}
LUA;

    public function numbers(string $name): array
    {
        $now = time();
        $key = $this->key($name);
        $reply = $this->app['redis']->connection($this->server())->eval(self::LOOK, 3, $key, $key.':delayed', $key.':reserved', $now);
        if (!is_array($reply) || count($reply) !== 10) {
            throw new \RuntimeException('the server has not answered');
        }
        [$ready, $delayed, $due, $reserved, $expired, $head, $held] = $reply;
        $times = array_map('intval', array_filter(array_slice($reply, 7), 'is_numeric')); // since when the first of each kind waits
        $number = static function ($n) {
            return $n < 0 ? null : (int) $n;
        };

        return [
            'ready' => $number($ready), 'due' => $number($due), 'expired' => $number($expired),
            'delayed' => $delayed < 0 || $due < 0 ? null : $delayed - $due,
            'reserved' => $reserved < 0 || $expired < 0 ? null : $reserved - $expired,
            'oldest' => $times === [] ? null : max(0, $now - min($times)),
            'head' => substr((string) $head, 0, 16), 'held' => substr((string) $held, 0, 16),
        ];
    }

    public function forget(): void
    {
        if (method_exists($this->app['redis'], 'purge')) {
            $this->app['redis']->purge($this->server());
        }
    }

    private function server(): string
    {
        return (string) ($this->config['connection'] ?? '') ?: 'default';
    }

    /** From 13.5 on a cluster's key has a hash tag that getQueue does not tell. */
    private function key(string $name): string
    {
        $key = function () use ($name) {
            return method_exists($this, 'getQueueRedisKey') ? $this->getQueueRedisKey($name) : $this->getQueue($name);
        };
        $queue = $this->queue();

        return (string) $key->bindTo($queue, get_class($queue))();
    }
}

final class Database extends Queues
{
    public function numbers(string $name): array
    {
        $now = time();
        $expiry = $now - (int) ($this->config['retry_after'] ?? 60);
        $row = (array) $this->jobs($name)->selectRaw(
            'sum(case when reserved_at is null and available_at <= ? then 1 else 0 end) as n_ready,'
            .' sum(case when reserved_at is null and available_at > ? then 1 else 0 end) as n_delayed,'
            .' sum(case when reserved_at > ? then 1 else 0 end) as n_reserved,'
            .' sum(case when reserved_at <= ? then 1 else 0 end) as n_expired,'
            .' min(case when reserved_at is null and available_at <= ? then available_at end) as first_time,'
            .' min(case when reserved_at <= ? then reserved_at end) as first_expired,'
            .' sum(case when reserved_at is not null then id else 0 end) as held_ids, sum(reserved_at) as held_times',
            [$now, $now, $expiry, $expiry, $now, $expiry]
        )->first();
        $ready = (int) $row['n_ready'];
        $ages = [];
        if ($row['first_time'] !== null) {
            $ages[] = $now - (int) $row['first_time'];
        }
        if ($row['first_expired'] !== null) { // since when it is handed out again
            $ages[] = $expiry - (int) $row['first_expired'];
        }
        // By time and not by id: a delayed job with a smaller id that comes due is no sign of work.
        $head = $ready === 0 ? null : $this->jobs($name)->whereNull('reserved_at')->where('available_at', '<=', $now)
            ->orderBy('available_at')->orderBy('id')->limit(1)->value('id');

        return [
            'ready' => $ready, 'delayed' => (int) $row['n_delayed'],
            'reserved' => (int) $row['n_reserved'], 'expired' => (int) $row['n_expired'],
            'oldest' => $ages === [] ? null : max(0, max($ages)),
            'head' => (string) $head,
            'held' => $row['held_times'] === null ? '' : $row['held_ids'].'/'.$row['held_times'],
        ] + self::NOTHING;
    }

    public function forget(): void
    {
        $this->app['db']->purge($this->config['connection'] ?? null);
    }

    private function jobs(string $name)
    {
        return Server::database($this->app, $this->config['connection'] ?? null)
            ->table((string) ($this->config['table'] ?? 'jobs'))->useWritePdo()->where('queue', $name);
    }
}

final class Sqs extends Queues
{
    public function numbers(string $name): array
    {
        $queue = $this->queue();
        $answer = $queue->getSqs()->getQueueAttributes([
            'QueueUrl' => $queue->getQueue($name),
            'AttributeNames' => ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible', 'ApproximateNumberOfMessagesDelayed'],
        ])['Attributes'];
        $number = static function (string $name) use ($answer) {
            return isset($answer[$name]) ? (int) $answer[$name] : null;
        };

        return [
            'ready' => $number('ApproximateNumberOfMessages'),
            'delayed' => $number('ApproximateNumberOfMessagesDelayed'),
            'reserved' => $number('ApproximateNumberOfMessagesNotVisible'),
        ] + self::NOTHING;
    }

    /** Left alone, the client waits a minute for an answer, and asks four times. */
    protected function queue()
    {
        $options = 'queue.connections.'.$this->connection;
        $config = $this->app['config'];
        $config->set([
            "$options.http" => ['timeout' => Server::PATIENCE, 'connect_timeout' => Server::PATIENCE] + (array) $config->get("$options.http"),
            "$options.retries" => 1,
        ]);

        return parent::queue();
    }
}

final class Beanstalkd extends Queues
{
    public function numbers(string $name): array
    {
        $this->forget(); // not every client notices that the server was started again
        $queue = $this->queue();
        $tube = class_exists('Pheanstalk\\Values\\TubeName') ? new \Pheanstalk\Values\TubeName($queue->getQueue($name)) : $queue->getQueue($name);
        try {
            $stats = $queue->getPheanstalk()->statsTube($tube);
        } catch (\Throwable $e) {
            if (stripos($e->getMessage(), 'NOT_FOUND') === false && stripos(get_class($e), 'TubeNotFound') === false) {
                throw $e;
            }

            return ['ready' => 0, 'delayed' => 0, 'reserved' => 0] + self::NOTHING; // a tube exists as long as it has jobs, or somebody looks at it
        }
        $number = static function (string $old, string $new) use ($stats) {
            $value = $stats->$new ?? $stats[$old] ?? null; // Pheanstalk 5, or an older one

            return is_numeric($value) ? (int) $value : null;
        };
        $deleted = $number('cmd-delete', 'cmdDelete');

        return [
            'ready' => $number('current-jobs-ready', 'currentJobsReady'),
            'delayed' => $number('current-jobs-delayed', 'currentJobsDelayed'),
            'reserved' => $number('current-jobs-reserved', 'currentJobsReserved'),
            'held' => $deleted === null ? '' : 'deleted '.$deleted,
        ] + self::NOTHING;
    }
}

/** A driver of which only the size is known. */
final class Sized extends Queues
{
    public function numbers(string $name): array
    {
        return ['ready' => (int) $this->queue()->size($name)] + self::NOTHING;
    }
}

/** Connections that do not wait for ever. */
final class Server
{
    public const PATIENCE = 5; // seconds

    public static function database($app, ?string $name)
    {
        $name = $name ?: $app['config']->get('database.default');
        $options = "database.connections.$name.options";
        $app['config']->set($options, (array) $app['config']->get($options) + [\PDO::ATTR_TIMEOUT => self::PATIENCE]);

        $connection = $app['db']->connection($name);
        $connection->getPdo(); // twice at most; a query would have it tried four times

        return $connection;
    }
}
