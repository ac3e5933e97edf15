<?php

namespace App\Jobs;

use Illuminate\Support\Facades\DB;

/** Holds a connection to the database, and needs it again at its end. */
class Queries extends Job
{
    public $seconds = 1;

    protected function run(): void
    {
        DB::select('select 1');
        sleep($this->seconds);
        // Without the framework's own second attempt: what a transaction gets.
        DB::getPdo()->query('select 1');
    }
}
