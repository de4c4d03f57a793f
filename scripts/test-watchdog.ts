// Ends the process of a test file that stays alive: a loop or an open handle keeps its process alive after the last test.
// `npm test` imports this into the runner and each test file.

const minutes = Number(process.env.TEST_FILE_MINUTES)
if (process.env.NODE_TEST_CONTEXT) {
  setTimeout(() => {
    console.error(`${process.argv[1]} did not end within ${minutes} minutes`)
    process.exit(1)
  }, minutes * 60_000).unref()
}
