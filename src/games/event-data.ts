import { type AppError, invalid } from '../errors.ts'
import { decodeJson, forbiddenCharacterError } from '../http/body.ts'

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/**
 * Decodes the member `data_base64` of an event in JSON. CloudEvents libraries write this member if a program gives them
 * the data as bytes. `null` and an empty text count as absent.
 * @returns the event with the member `data`, or an error. If there is no `data_base64`, returns the input
 */
export function decodeData(input: unknown): unknown {
  if (typeof input !== 'object' || input === null || !Object.hasOwn(input, 'data_base64')) return input
  const { data, data_base64: encoded } = input as { data?: unknown; data_base64: unknown }
  if (encoded === null || encoded === undefined || encoded === '') return input
  if (data !== undefined && data !== null) return refuse('ne peut pas accompagner data', 'cannot accompany data')
  if (typeof encoded !== 'string' || !BASE64.test(encoded)) return refuse('doit être en base64', 'must be base64')
  try {
    const { value } = decodeJson(Buffer.from(encoded, 'base64'))
    return forbiddenCharacterError({ data: value }) ?? { ...input, data: value }
  } catch {
    return refuse('ne contient pas de JSON valide', 'contains no valid JSON')
  }
}

function refuse(fr: string, en: string): AppError {
  return invalid({ data_base64: [{ fr: `Le champ data_base64 ${fr}.`, en: `The data_base64 field ${en}.` }] })
}
