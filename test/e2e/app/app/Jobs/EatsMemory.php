<?php

namespace App\Jobs;

/** Keeps memory until the process ends. */
class EatsMemory extends Job
{
    public $megabytes = 64;

    private static $eaten = [];

    protected function run(): void
    {
        ini_set("memory_limit", "-1");
        for ($i = 0; $i < $this->megabytes; $i++) {
            self::$eaten[] = str_repeat(chr($i % 256), 1024 * 1024);
        }
    }
}
