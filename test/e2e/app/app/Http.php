<?php

namespace App;

/** One HTTP request by curl. Seconds 0 is curl's own default: no limit. */
class Http
{
    public static function post(string $url, string $body, array $headers = [], int $seconds = 5): string
    {
        return self::answer($url, $body, $headers, $seconds)['body'];
    }

    /** The whole answer: status, headers by lower-case name, body. */
    public static function answer(string $url, string $body, array $headers = [], int $seconds = 5): array
    {
        $answered = [];
        $curl = curl_init($url);
        curl_setopt_array($curl, [
            CURLOPT_POST => true,
            CURLOPT_POSTFIELDS => $body,
            CURLOPT_HTTPHEADER => array_merge(['Content-Type: application/json'], $headers),
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT => $seconds,
            CURLOPT_HEADERFUNCTION => function ($curl, string $line) use (&$answered): int {
                [$name, $value] = explode(':', $line, 2) + [1 => ''];
                $answered[strtolower($name)] = trim($value);

                return strlen($line);
            },
        ]);
        $text = curl_exec($curl);
        if ($text === false) {
            throw new \RuntimeException('POST '.$url.': '.curl_error($curl));
        }

        return ['status' => curl_getinfo($curl, CURLINFO_RESPONSE_CODE), 'headers' => $answered, 'body' => $text];
    }
}
