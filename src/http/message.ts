import { Type } from './type.ts'

/** The body of an answer that only confirms. */
export const Message = Type.Object(
  { message: Type.String({ description: 'For a person to read.', examples: ['C’est fait.'] }) },
  { title: 'Message' },
)
