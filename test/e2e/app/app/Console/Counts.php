<?php

namespace App\Console;

use Illuminate\Console\Command;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Redis;

/** Prints what the queue's own tables say, as JSON. */
class Counts extends Command
{
    protected $signature = 'app:counts {--queue=default}';

    public function handle(): void
    {
        $queue = $this->option('queue');
        $counts = ['failed' => DB::table('failed_jobs')->count()];
        if (config('queue.default') === 'redis') {
            $redis = Redis::connection();
            $counts['waiting'] = $redis->llen("queues:$queue") + $redis->zcard("queues:$queue:delayed");
            $counts['reserved'] = $redis->zcard("queues:$queue:reserved");
        } else {
            $jobs = DB::table('jobs')->where('queue', $queue);
            $counts['waiting'] = (clone $jobs)->whereNull('reserved_at')->count();
            $counts['reserved'] = (clone $jobs)->whereNotNull('reserved_at')->count();
        }
        $this->line(json_encode($counts));
    }
}
