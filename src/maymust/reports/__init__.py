"""What was found, in the forms in which people and their tools read it: text, JSON, SARIF, JUnit, annotations."""
