<?php

namespace App\Providers;

use App\Console\HorizonWork;
use App\FileFailer;
use Illuminate\Queue\Events\JobProcessing;
use Illuminate\Queue\Events\Looping;
use Illuminate\Queue\Failed\FileFailedJobProvider;
use Illuminate\Support\Facades\Event;
use Illuminate\Support\ServiceProvider;

/** Misbehaves on request, as applications do: see the tests that set these variables. */
class AppServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->listen((string) getenv('APP_LISTENERS'));
        if (config('queue.failed.driver') === 'file' && ! class_exists(FileFailedJobProvider::class)) {
            $this->app->extend('queue.failer', function () {
                return new FileFailer(config('queue.failed.path'));
            });
        }
        $this->app->bind(HorizonWork::class, function ($app) {
            return new HorizonWork($app['queue.worker'], $app['cache.store']);
        });
    }

    public function boot(): void
    {
        if ($seconds = (float) getenv('APP_SLOW_BOOT')) {
            file_put_contents(getenv('APP_SLOW_BOOT_MARK'), getmypid());
            usleep((int) ($seconds * 1e6));
        }
        if ($end = getenv('APP_WINDOW_END')) {
            $this->window(getenv('APP_WINDOW_MARK'), $end);
        }
    }

    /** Holds the worker between its look at the gate and its second pop: from one file's making to another's. */
    private function window(string $mark, string $end): void
    {
        $looks = 0;
        Event::listen(Looping::class, function () use ($mark, $end, &$looks) {
            if (++$looks !== 2) {
                return;
            }
            touch($mark);
            for ($late = microtime(true) + 60; ! file_exists($end) && microtime(true) < $late;) {
                usleep(1000);
                clearstatcache();
            }
        });
    }

    private function listen(string $kind): void
    {
        $answers = [
            'true' => function () {
                return true;
            },
            'false' => function () {
                return false;
            },
            'throw' => function () {
                throw new \RuntimeException('a listener of the application throws');
            },
        ];
        if (isset($answers[$kind])) {
            Event::listen(Looping::class, $answers[$kind === 'false' ? 'true' : $kind]);
            Event::listen(JobProcessing::class, $answers[$kind]);
        }
    }
}
