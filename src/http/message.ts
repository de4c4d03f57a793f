import { Type } from './type.ts'

/** An answer that only says that it is done. */
export const Message = Type.Object(
  { message: Type.String({ description: 'For a person to read.', examples: ['C’est fait.'] }) },
  { title: 'Message' },
)
