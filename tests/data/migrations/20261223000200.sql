update dalsegno.facts set is_written = true where source = 'extracted';
