<?php

namespace App\Console;

use Illuminate\Queue\Console\WorkCommand;

/** Horizon's worker in small: queue:work under another name. */
class HorizonWork extends WorkCommand
{
    public function __construct($worker, $cache)
    {
        $this->signature = str_replace('queue:work', 'horizon:work', $this->signature).' {--supervisor=}';
        parent::__construct($worker, $cache);
    }
}
