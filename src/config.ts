import { isLoopback } from './loopback.ts'
import { findDevelopmentValues, readReachSettings } from './reach-config.ts'
import { MAIL_SETTINGS, SETTINGS, type Setting } from './settings.ts'

export type Config = Readonly<ReturnType<typeof toConfig>>

/**
 * An error that lists all faults in the environment variables. `npm start` prints the faults and exits with the code 78
 * (EX_CONFIG in sysexits.h).
 */
export class ConfigError extends Error {
  readonly faults: string[]
  constructor(faults: string[]) {
    super(`Bad configuration:\n${faults.map(fault => `  - ${fault}`).join('\n')}`)
    this.name = 'ConfigError'
    this.faults = faults
  }
}

/**
 * Converts environment variables to a frozen Config, without side effects. An unset or blank variable gets its default.
 * @throws ConfigError that lists all faults
 */
export function readConfig(env: Record<string, string | undefined>): Config {
  const faults = new Map<string, string>()
  const read = <T>(name: keyof typeof SETTINGS, setting: Setting<T>): T => {
    const value = env[name]?.trim() || setting.default
    try {
      return setting.parse(value)
    } catch (error) {
      // The message must not contain the value of the variable, because the value may be a secret.
      faults.set(name, `${name}: ${(error as Error).message}`)
      return undefined as T
    }
  }
  const config = toConfig(read)
  const allFaults = [...faults.values(), ...findContradictions(config, env, name => faults.has(name))]
  if (allFaults.length > 0) throw new ConfigError(allFaults)
  return Object.freeze(config)
}

function toConfig(read: <T>(name: keyof typeof SETTINGS, setting: Setting<T>) => T) {
  const role = read('ROLE', SETTINGS.ROLE)
  const mailServer = MAIL_SETTINGS.flatMap(setting => {
    const value = read(setting, SETTINGS[setting])
    return value === undefined ? [] : [{ setting, value }]
  })[0]
  const isDevelopment = mailServer === undefined
  const mailFrom = read('MAIL_FROM', SETTINGS.MAIL_FROM)
  const timeZone = read('TIMEZONE', SETTINGS.TIMEZONE)
  const guessBudgets = read('GUESS_BUDGETS', SETTINGS.GUESS_BUDGETS)
  const signUpLimits = read('SIGN_UP_LIMITS', SETTINGS.SIGN_UP_LIMITS)
  return {
    host: read('HOST', SETTINGS.HOST),
    port: read('PORT', SETTINGS.PORT),
    /** If this value is undefined, the process uses the embedded database in `dataDir`. */
    databaseUrl: read('DATABASE_URL', SETTINGS.DATABASE_URL),
    databaseSchema: read('DATABASE_SCHEMA', SETTINGS.DATABASE_SCHEMA),
    dataDir: read('DATA_DIR', SETTINGS.DATA_DIR),
    /**
     * The name and the value of the mail setting that is set. If no mail setting is set, `mailServer` is undefined, and
     * the development mailbox is used.
     */
    mailServer,
    /** Whether the development mailbox is used. */
    isDevelopment,
    mailFrom,
    smtpHeloName: read('SMTP_HELO_NAME', SETTINGS.SMTP_HELO_NAME),
    writeConnections: read('WRITE_CONNECTIONS', SETTINGS.WRITE_CONNECTIONS),
    mailConcurrency: read('MAIL_CONCURRENCY', SETTINGS.MAIL_CONCURRENCY),
    /** The secrets, the newest first. If the array is empty, the process uses the generated secret in `dataDir`. */
    jwtSecrets: read('JWT_SECRET', SETTINGS.JWT_SECRET),
    intakeKeys: read('INTAKE_KEYS', SETTINGS.INTAKE_KEYS),
    trustProxy: read('TRUST_PROXY', SETTINGS.TRUST_PROXY),
    sharedNetworks: read('SHARED_NETWORKS', SETTINGS.SHARED_NETWORKS),
    corsOrigins: read('CORS_ORIGINS', SETTINGS.CORS_ORIGINS),
    metricsToken: read('METRICS_TOKEN', SETTINGS.METRICS_TOKEN),
    /** The permitted requests per client and minute. */
    throttle: {
      requestOtp: read('THROTTLE_REQUEST_OTP', SETTINGS.THROTTLE_REQUEST_OTP),
      verifyOtp: read('THROTTLE_VERIFY_OTP', SETTINGS.THROTTLE_VERIFY_OTP),
    },
    /** Undefined if budgets are off. Without a mail server, the process uses the development mailbox. */
    guessBudgets: mailServer ? guessBudgets : undefined,
    signUpLimits: mailServer ? signUpLimits : undefined,
    reminderOffsets: read('REMINDER_OFFSETS', SETTINGS.REMINDER_OFFSETS),
    timeZone,
    retentionReadDays: read('RETENTION_READ_DAYS', SETTINGS.RETENTION_READ_DAYS),
    retentionDays: read('RETENTION_DAYS', SETTINGS.RETENTION_DAYS),
    termsVersion: read('TERMS_VERSION', SETTINGS.TERMS_VERSION),
    termsUrl: read('TERMS_URL', SETTINGS.TERMS_URL),
    /** The number of days after a sign-in at which its session ends. */
    sessionDays: read('SESSION_DAYS', SETTINGS.SESSION_DAYS),
    ...readReachSettings(read, { isDevelopment, mailFrom, timeZone }),
    web: read('WEB', SETTINGS.WEB) === 'on',
    serves: role !== 'worker',
    works: role !== 'web',
    logLevel: read('LOG_LEVEL', SETTINGS.LOG_LEVEL),
    devMailbox: read('DEV_MAILBOX', SETTINGS.DEV_MAILBOX) === 'on',
    stopDelayMs: read('STOP_DELAY', SETTINGS.STOP_DELAY),
  }
}

/**
 * Finds combinations of settings that are not allowed although each value is valid.
 * @param isFaulty returns whether the value of a setting is invalid. A setting with an invalid value counts as set
 */
function findContradictions(
  config: Config,
  env: Record<string, string | undefined>,
  isFaulty: (name: keyof typeof SETTINGS) => boolean,
): string[] {
  const faults: string[] = []
  const isExternal = config.databaseUrl !== undefined || isFaulty('DATABASE_URL')
  const mailSettings = MAIL_SETTINGS.join(' or ')
  const hasMailServer = config.mailServer !== undefined || MAIL_SETTINGS.some(isFaulty)
  if (isExternal) {
    for (const [name, keys] of [
      ['JWT_SECRET', config.jwtSecrets],
      ['INTAKE_KEYS', config.intakeKeys],
    ] as const) {
      if (!isFaulty(name) && keys.length === 0) {
        faults.push(`${name}: required with DATABASE_URL; \`npm run courtside -- secret\` prints a new secret`)
      }
    }
  }
  // The mailbox shows the codes of all users, so the mailbox may run only on a developer's own machine.
  if (!hasMailServer && !config.devMailbox && !isFaulty('DEV_MAILBOX')) {
    const reasons = [
      isLoopback(config.host) ? undefined : 'a HOST that is not a loopback address',
      isExternal ? 'DATABASE_URL' : undefined,
      isFaulty('TRUST_PROXY') || config.trustProxy.length > 0 ? 'TRUST_PROXY' : undefined,
      env.NODE_ENV === 'production' ? 'NODE_ENV=production' : undefined,
    ].filter(reason => reason !== undefined)
    if (reasons.length > 0) {
      faults.push(
        `${mailSettings}: required with ${reasons.join(', ')} (or DEV_MAILBOX=on, which shows all codes to every local user)`,
      )
    }
  }
  // The development mailbox is in the memory of the process that sends mails. So this process must also answer the
  // requests for the mailbox.
  if (!hasMailServer && !(config.serves && config.works)) {
    faults.push(`${mailSettings}: required with ROLE=web or ROLE=worker; the development mailbox needs ROLE=all`)
  }
  return [...faults, ...(hasMailServer ? findDevelopmentValues(config) : [])]
}
