/**
 * Reads server-sent events to their end.
 * @param alive called with every piece that arrives, be it only a heartbeat
 * @param happened called with each event, its data still text
 */
export async function readEvents(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  alive: () => void,
  happened: (name: string, data: string) => void,
): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  let name = ''
  let data: string[] = []

  function take(line: string): void {
    if (line === '') {
      if (data.length > 0) happened(name || 'message', data.join('\n'))
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
    alive()
    const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop()!
    lines.forEach(take)
  }
}
