<?php

namespace App\Console;

use Illuminate\Foundation\Console\Kernel as ConsoleKernel;

class Kernel extends ConsoleKernel
{
    protected $commands = [
        Counts::class,
        Dispatch::class,
        Horizon::class,
        HorizonWork::class,
        Load::class,
        Reserve::class,
        Schema::class,
    ];
}
