<?php

namespace App\Console;

use Illuminate\Console\Command;
use Illuminate\Support\Facades\DB;

/** Marks every waiting job as taken some seconds ago, as a worker that died would have. */
class Reserve extends Command
{
    protected $signature = 'app:reserve {--ago=0}';

    public function handle(): void
    {
        DB::table('jobs')->update(['reserved_at' => time() - (int) $this->option('ago'), 'attempts' => 1]);
    }
}
