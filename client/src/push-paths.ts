// The routes of pushes, until the OpenAPI document contains them.

export type None = { query?: never; header?: never; path?: never; cookie?: never }
type Json<T> = { content: { 'application/json': T } }
type Ok<T> = { 200: { headers: { [name: string]: unknown } } & Json<T> }
type Operation<Body, T> = { parameters: None; requestBody?: Body; responses: Ok<T> }
type Subscription = {
  endpoint: string
  keys: { p256dh: string; auth: string }
  public_key?: string
  time_zone?: string
}
type Unused = { post?: never; patch?: never }

declare module './api.ts' {
  interface paths {
    '/api/v1/push/key': Unused & {
      get: Operation<never, { data: { public_key: string } }>
      put?: never
      delete?: never
    }
    '/api/v1/push/subscriptions': Unused & {
      get?: never
      put: Operation<Json<Subscription>, { data: { id: number; created_at: string } }>
      delete: Operation<Json<{ endpoint: string }>, Message>
    }
  }
}
