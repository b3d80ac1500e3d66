// placeholder until the server has it
import { openFile } from "./file.js";
export function openServed(data) {
  return openFile(data);
}
