<?php

namespace App;

use Illuminate\Queue\Failed\FailedJobProviderInterface;

/** Keeps failed jobs in one file, in the form that Laravel has from version 10 on. Debian's has no such store. */
class FileFailer implements FailedJobProviderInterface
{
    private $path;

    public function __construct(string $path)
    {
        $this->path = $path;
    }

    public function log($connection, $queue, $payload, $exception)
    {
        $rows = $this->all();
        array_unshift($rows, [
            'id' => json_decode($payload, true)['uuid'], 'connection' => $connection, 'queue' => $queue, 'payload' => $payload,
            'exception' => (string) $exception, 'failed_at' => date('Y-m-d H:i:s'), 'failed_at_timestamp' => time(),
        ]);
        file_put_contents($this->path, json_encode($rows));
    }

    public function all()
    {
        return is_file($this->path) ? json_decode(file_get_contents($this->path)) : [];
    }

    public function find($id)
    {
        throw new \LogicException('nobody asks for one');
    }

    public function forget($id)
    {
        throw new \LogicException('nobody forgets one');
    }

    public function flush($hours = null)
    {
        unlink($this->path);
    }

    public function ids($queue = null)
    {
        return array_column($this->all(), 'id');
    }
}
