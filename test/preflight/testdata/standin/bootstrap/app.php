<?php

return new Illuminate\Foundation\Application(dirname(__DIR__));
