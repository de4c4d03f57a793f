import type { paths } from './api.ts'

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** The method and path of an operation in the OpenAPI document, such as `GET /api/v1/auth/me`. */
export type Endpoint = {
  [Path in keyof paths]: {
    [M in Method]: paths[Path][M] extends { responses: unknown } ? `${Uppercase<M>} ${Path}` : never
  }[Method]
}[keyof paths]

type Operation<E extends Endpoint> = {
  [Path in keyof paths]: { [M in Method]: E extends `${Uppercase<M>} ${Path}` ? paths[Path][M] : never }[Method]
}[keyof paths]

type JsonContent<T> = T extends { content: { 'application/json': infer Json } } ? Json : never
type OmitUndefined<T> = { [K in keyof T as T[K] extends undefined ? never : K]: T[K] }

type Parts<O> = O extends { parameters: { path?: infer Path; query?: infer Query }; requestBody?: infer Body }
  ? { path: Path; query: Query; body: Body extends undefined ? undefined : JsonContent<Body> }
  : never

/**
 * The `path` parameters, the `query` and the `body` of an endpoint. If an endpoint has no query, for example, this type
 * has no property `query`.
 */
export type Input<E extends Endpoint> = OmitUndefined<Parts<Operation<E>>>

/** The JSON body of an endpoint's answer with status 200. */
export type Answer<E extends Endpoint> = Operation<E> extends { responses: { 200: infer Ok } } ? JsonContent<Ok> : never

export type NotificationPage = Answer<'GET /api/v1/notifications'>
export type PageQuery = NonNullable<Input<'GET /api/v1/notifications'>['query']>
