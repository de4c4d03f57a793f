import { Type } from './type.ts'

/** The body of an answer that contains only a confirmation. */
export const Message = Type.Object(
  { message: Type.String({ description: 'A confirmation to show to the user.', examples: ['C’est fait.'] }) },
  { title: 'Message' },
)
