import type { FastifyReply } from 'fastify'

/** Sends text that is already JSON. @returns the reply, for the handler to return */
export function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json)
}
