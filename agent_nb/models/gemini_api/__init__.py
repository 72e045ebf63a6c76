"""Google's Gemini API: answers of `generateContent` decoded into parts."""
