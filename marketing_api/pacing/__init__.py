"""The rules of pacing and the file that shares them. What the rest of the package uses is `marketing_api.pace`."""
