<?php
// Signs a user in with a code that the service mails, then shows the user's profile and notifications.
//
//   php sign-in.php EMAIL [FIRST_NAME LAST_NAME]      (pass the names only to sign up)
//
// COURTSIDE_URL is the address of the service. COURTSIDE_TOKEN_FILE is the file in which the program stores the token,
// so the next run needs no code. An app would store the token in the keychain of the phone instead. The program
// needs no PHP extension.
declare(strict_types=1);

$url = getenv('COURTSIDE_URL') ?: 'http://127.0.0.1:3000';
$tokenFile = getenv('COURTSIDE_TOKEN_FILE') ?: '.courtside-token';
if ($argc !== 2 && $argc !== 4) {
    fail('usage: php sign-in.php EMAIL [FIRST_NAME LAST_NAME]');
}
$token = is_file($tokenFile) ? trim(file_get_contents($tokenFile)) : null;

if (!$token || !show()) {
    signIn($argv[1], array_slice($argv, 2));
    show();
}

/** Shows the profile and the newest notifications. Returns false if the session has ended. */
function show(): bool
{
    $me = call('GET', '/api/v1/auth/me');
    if ($me === null) {
        return false;
    }
    echo "signed in as {$me['data']['first_name']} {$me['data']['last_name']} (user {$me['data']['id']})\n";
    $page = call('GET', '/api/v1/notifications');
    echo "{$page['meta']['unread_count']} unread of {$page['meta']['total']}\n";
    foreach ($page['data'] as $notification) {
        echo $notification['is_read'] ? ' ' : '*', " {$notification['title']}: {$notification['message']}\n";
    }
    return true;
}

/** Requests a code by mail and exchanges the code for a token. */
function signIn(string $email, array $names): void
{
    $signUp = $names ? ['first_name' => $names[0], 'last_name' => $names[1], 'accept_cgu' => true] : [];
    // If the token file contains an old token, both requests contain this token. The old token gives no access any
    // more, but it shows that this client has signed in before. The service gives such a client a code, a number of
    // attempts and a waiting time of its own. So a stranger who guesses codes for the same address cannot make this
    // user wait.
    $asked = expectOk(send('POST', '/api/v1/auth/request-otp', ['email' => $email] + $signUp));
    echo $asked['message'], "\ncode: ";
    // The code must stay a string, because it may begin with zeros: 0042.
    $code = trim((string) fgets(STDIN));
    $verified = expectOk(send('POST', '/api/v1/auth/verify-otp', ['email' => $email, 'code' => $code]));
    keep($verified['access_token']);
}

/**
 * Sends a request with the user's token. If the token has expired, refreshes the token and repeats the request. Returns
 * null if the session has ended.
 */
function call(string $method, string $path, ?array $body = null): ?array
{
    $answer = send($method, $path, $body);
    if ($answer['status'] === 401) {
        $refreshed = send('POST', '/api/v1/auth/refresh');
        // A 401 means that the session has ended, by a logout or because its days are over. After any other error, the
        // token is still valid.
        if ($refreshed['status'] === 401) {
            return null;
        }
        keep(expectOk($refreshed)['access_token']);
        $answer = send($method, $path, $body);
    }
    return expectOk($answer);
}

/** Sends one request and parses the JSON of the answer. The answer to a failed request is also JSON. */
function send(string $method, string $path, ?array $body = null): array
{
    global $url, $token;
    $headers = $token ? ["Authorization: Bearer $token"] : [];
    if ($body !== null) {
        $headers[] = 'Content-Type: application/json';
    }
    $stream = fopen($url . $path, 'r', false, stream_context_create(['http' => [
        'method' => $method,
        'header' => $headers,
        'content' => $body === null ? '' : json_encode($body, JSON_THROW_ON_ERROR),
        // Without this option, PHP does not return the body of an answer with an error status.
        'ignore_errors' => true,
        'timeout' => 10,
    ]]));
    if (!$stream) {
        fail("$url cannot be reached");
    }
    $head = stream_get_meta_data($stream)['wrapper_data'];
    return [
        'status' => (int) explode(' ', $head[0])[1],
        'retry_after' => preg_match('/^retry-after: *(\d+)/im', implode("\n", $head), $found) ? $found[1] : null,
        'body' => json_decode(stream_get_contents($stream), true, 512, JSON_THROW_ON_ERROR),
    ];
}

/**
 * Stores a new token before its first use. Soon after the first use of a new token, the service refuses the previous
 * token. If the program lost the new token after the first use, the user would have to sign in again.
 */
function keep(string $newest): void
{
    global $token, $tokenFile;
    $token = $newest;
    umask(0077);
    file_put_contents($tokenFile, $newest);
}

/**
 * Ends the program if the request failed. Every error has a `message` for people and a `code` for programs. The answers
 * 429 and 503 also have the HTTP header Retry-After.
 */
function expectOk(array $answer): array
{
    if ($answer['status'] !== 200) {
        $again = $answer['retry_after'] === null ? '' : " (try again in {$answer['retry_after']} s)";
        fail("{$answer['status']} {$answer['body']['code']}: {$answer['body']['message']}$again");
    }
    return $answer['body'];
}

function fail(string $text): never
{
    fwrite(STDERR, "$text\n");
    exit(1);
}
