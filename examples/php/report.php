<?php
// Reports events about a game, as a games service does. The program sends a single event, then a batch of two events.
//
//   php report.php GAME_ID CREATOR_ID PLAYER_ID
//
// COURTSIDE_URL is the address of the service. COURTSIDE_INTAKE_KEY is one of the intake keys of the service. The
// program needs no PHP extension.
declare(strict_types=1);

$url = getenv('COURTSIDE_URL') ?: 'http://127.0.0.1:3000';
$key = getenv('COURTSIDE_INTAKE_KEY');
if (!$key || $argc !== 4) {
    fwrite(STDERR, "usage: COURTSIDE_INTAKE_KEY=… php report.php GAME_ID CREATOR_ID PLAYER_ID\n");
    exit(1);
}
[$gameId, $creatorId, $playerId] = array_map('intval', array_slice($argv, 1));

// `data` contains the whole state of the game after the event, so the service does not depend on earlier events.
$game = [
    'game_id' => $gameId,
    'creator_id' => $creatorId,
    'player_ids' => [$creatorId, $playerId],
    'starts_at' => (new DateTimeImmutable('+3 days'))->format(DATE_RFC3339),
];
$joined = createEvent('game_joined', $game + ['actor_id' => $playerId]);
$moved = createEvent('game_updated', $game + ['place' => 'Court 2']);
$cancelled = createEvent('game_cancelled', $game + ['actor_id' => $creatorId]);

$single = deliver($joined, 'application/cloudevents+json');
$batch = deliver([$moved, $cancelled], 'application/cloudevents-batch+json');
if (!isset($batch['results'])) {
    throw new RuntimeException("the service refused the whole batch: {$batch['message']}");
}

$exitCode = 0;
foreach ([$single + ['id' => $joined['id']], ...$batch['results']] as $result) {
    // If the service refuses a single event, the answer is an error without `status`. In a batch, the result of a
    // refused event has the `status` `rejected`. In both cases, the service would refuse the event at every attempt. A
    // developer must correct the program that created the event.
    $status = $result['status'] ?? 'rejected';
    if ($status === 'rejected') {
        $exitCode = 1;
    }
    echo "{$result['id']} $status: ", $result['message'] ?? "{$result['notifications']} notification(s)", "\n";
}
exit($exitCode);

/**
 * Creates an event with an id and a time. A real games service creates the event in the transaction that changes the
 * game. The games service keeps the event in a table until the event is delivered. `source` and `id` identify the
 * event, so both must be the same in every attempt. Courtside applies the events of a game in the order of `time`.
 */
function createEvent(string $type, array $data): array
{
    $now = (new DateTimeImmutable())->format('Y-m-d\TH:i:s.uP');
    $id = bin2hex(random_bytes(16));
    $source = '/games';
    return ['specversion' => '1.0', 'id' => $id, 'source' => $source, 'type' => $type, 'time' => $now, 'data' => $data];
}

/**
 * Sends the events, and repeats the request if another attempt may succeed. Every attempt sends the same bytes. If the
 * service accepted an event but the answer was lost, the service answers the next attempt with `duplicate`.
 */
function deliver(array $body, string $contentType): array
{
    global $url, $key;
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => ["Authorization: Bearer $key", "Content-Type: $contentType"],
        'content' => json_encode($body, JSON_THROW_ON_ERROR),
        // Without this option, PHP does not return the body of an answer with an error status.
        'ignore_errors' => true,
        'timeout' => 10,
    ]]);
    for ($attempt = 0; $attempt < 8; $attempt++) {
        $retryAfter = 0;
        $stream = @fopen("$url/internal/v1/events", 'r', false, $context);
        if ($stream) {
            $head = stream_get_meta_data($stream)['wrapper_data'];
            $status = (int) explode(' ', $head[0])[1];
            $answer = json_decode((string) stream_get_contents($stream), true);
            if (is_array($answer) && $status < 500 && !in_array($status, [408, 429], true) && !isAhead($answer)) {
                return $answer;
            }
            preg_match('/^retry-after: *(\d+)/im', implode("\n", $head), $found) && $retryAfter = (int) $found[1];
        }
        // The upper limit of the pause doubles each time. The random factor spreads out the retries of all clients.
        usleep($retryAfter * 1_000_000 + random_int(0, (int) (min(30, 0.5 * 2 ** $attempt) * 1_000_000)));
    }
    throw new RuntimeException('the events were not delivered: keep them and send them again later');
}

/**
 * Returns whether the service refused an event only for its `time`. The clock of the service or of this machine is
 * wrong, so the service may accept the same bytes later. In a repeated batch, the other events are duplicates.
 */
function isAhead(array $answer): bool
{
    foreach ([$answer, ...($answer['results'] ?? [])] as $result) {
        if (array_keys($result['errors'] ?? []) === ['time']) {
            return true;
        }
    }
    return false;
}
