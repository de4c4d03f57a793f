/** Returns an error that names the setting at fault, if the service cannot listen on its address. */
export function explainListenError(
  error: NodeJS.ErrnoException,
  { host, port }: { host: string; port: number },
): Error {
  const sentence = explain(error, host, port)
  return sentence === undefined ? error : new Error(sentence, { cause: error })
}

function explain({ code }: NodeJS.ErrnoException, host: string, port: number): string | undefined {
  switch (code) {
    case 'EADDRINUSE':
      return `PORT: another process already listens on the port ${port} of ${host}. Stop it, or set another PORT.`
    case 'EACCES':
      return `PORT: this user may not listen on the port ${port}. Set a PORT from 1024 up.`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `HOST: ${host} is not an address of this machine. Set another HOST.`
    default:
      return undefined
  }
}
