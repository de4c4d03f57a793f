/**
 * Reads server-sent events until the stream ends.
 * @param onActivity is called for every chunk of bytes, including heartbeats
 * @param onEvent is called with the name and the data of each event; the data is text that is not parsed yet
 */
export async function readEvents(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  onActivity: () => void,
  onEvent: (name: string, data: string) => void,
): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  let name = ''
  let data: string[] = []

  function readLine(line: string): void {
    if (line === '') {
      if (data.length > 0) onEvent(name || 'message', data.join('\n'))
      name = ''
      data = []
      return
    }
    const [, field, value = ''] = /^([^:]*)(?::[ ]?(.*))?$/s.exec(line)!
    if (field === 'event') name = value
    if (field === 'data') data.push(value)
  }

  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    onActivity()
    // A carriage return at the end of a chunk may be the first half of a line ending, so the carriage return stays in
    // `rest`.
    const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop()!
    lines.forEach(readLine)
  }
}
