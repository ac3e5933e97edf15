<?php

return ['env' => 'production'];
