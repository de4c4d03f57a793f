// Ends the process of a test file that runs too long. A loop or an open handle can keep the process alive after the
// last test. `npm test` imports this file into the runner and into each test file.

const minutes = Number(process.env.TEST_FILE_MINUTES)
if (process.env.NODE_TEST_CONTEXT) {
  setTimeout(() => {
    console.error(`${process.argv[1]} did not end within ${minutes} minutes`)
    process.exit(1)
  }, minutes * 60_000).unref()
}
